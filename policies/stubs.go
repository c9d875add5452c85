package policies

// The one below is replaced by its own file.
func JudgeModel(f *Fault) Verdict { panic("model.go") }
