package policies
import ("testing";"fmt";"os";"encoding/json")
func TestZZ(t *testing.T){
 for _,a:=range []string{"classification","retry_evidence"}{
 d,_:=os.ReadFile("testdata/vectors/"+a+".json"); var rows []vector; json.Unmarshal(d,&rows)
 for _,v:=range rows { in:=decode[modelInput](t,v.Input); g:=JudgeModel(in.fault(t)); m:=in.Message; if len(m)>90{m=m[:90]}
 fmt.Printf("%-20s %-28s %s | %d %s %s %s\n", v.ID,g.Rule,g.Reason,in.Status,in.Code,in.Type,m)}}
}
