package explain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/policies"
)

// Judge says what a fault means; [policies.Judge] unless a test replaces it.
type Judge func(*policies.Fault) policies.Verdict

// MaxLine is the longest input line that is read; a longer one is a bad line.
const MaxLine = 8 << 20

// Answer is what "explain error" says about one failure. Field names are part
// of the interface (I2).
type Answer struct {
	Reason        policies.Reason       `json:"reason"`
	RetrySame     bool                  `json:"retry_same"`
	Failover      bool                  `json:"failover"`
	Permanent     bool                  `json:"permanent"`
	Effect        policies.Effect       `json:"effect"`
	FloorMS       *int64                `json:"floor_ms"`
	FloorInfinite bool                  `json:"floor_infinite"`
	FloorSource   *policies.FloorSource `json:"floor_source"`
	Rule          string                `json:"rule"`
}

// badLine answers a line that could not be read.
type badLine struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// Explain judges one fault.
func Explain(f *policies.Fault, judge Judge) Answer {
	v := judge(f)
	a := Answer{
		Reason: v.Reason, RetrySame: v.RetrySame, Failover: v.Failover, Permanent: v.Permanent,
		FloorInfinite: v.Floor.Infinite, Rule: v.Rule,
	}
	a.Effect = effectOf(f.Surface, v.Effect)
	if !v.Floor.Asked() {
		return a
	}
	a.FloorSource = &v.Floor.Source
	if !v.Floor.Infinite {
		ms := wholeMS(v.Floor.Wait)
		a.FloorMS = &ms
	}
	return a
}

// effectOf is the effect as I2 words it: "none" is said on the model surface
// alone. A read of the others has done nothing whatever became of it.
func effectOf(surface policies.Surface, e policies.Effect) policies.Effect {
	switch {
	case surface == policies.SurfaceModel:
		return policies.EffectNone
	case e == policies.EffectNone, e == "":
		return policies.EffectNotSent
	}
	return e
}

// wholeMS rounds up, since a floor is never undercut.
func wholeMS(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// Errors reads one failure per line of in, as JSON, and writes one answer per
// line to out. now is the moment of failures that name none. A line that cannot
// be read is answered with its number and what is wrong, and counted in bad; err
// is trouble with in or out.
func Errors(in io.Reader, out io.Writer, judge Judge, now time.Time) (bad int, err error) {
	r := bufio.NewReaderSize(in, 64<<10)
	w := bufio.NewWriterSize(out, 64<<10)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	var line []byte
	for n := 1; ; n++ {
		var tooLong bool
		line, tooLong, err = readLine(r, line[:0])
		if err != nil {
			break
		}
		answer, problem := explainLine(line, tooLong, judge, now)
		if problem != nil {
			bad++
			answer = badLine{Line: n, Error: problem.Error()}
		}
		if err = enc.Encode(answer); err != nil {
			return bad, err
		}
	}
	if err != io.EOF {
		return bad, errors.Join(err, w.Flush())
	}
	return bad, w.Flush()
}

func explainLine(line []byte, tooLong bool, judge Judge, now time.Time) (any, error) {
	if tooLong {
		return nil, fmt.Errorf("the line is longer than %d bytes", MaxLine)
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, errors.New("the line is empty; want a JSON object")
	}
	f, err := parseFault(line, now)
	if err != nil {
		return nil, err
	}
	return Explain(f, judge), nil
}

// readLine appends the next line, without its end, to buf. A line above MaxLine
// is read to its end but not kept. io.EOF comes only after the last line.
func readLine(r *bufio.Reader, buf []byte) (line []byte, tooLong bool, err error) {
	read := false
	for {
		part, err := r.ReadSlice('\n')
		read = read || len(part) > 0
		if !tooLong {
			buf = append(buf, part...)
			tooLong = len(buf) > MaxLine
		}
		if tooLong {
			buf = buf[:0]
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && read, err == nil:
			return bytes.TrimRight(buf, "\r\n"), tooLong, nil
		}
		return buf, tooLong, err
	}
}
