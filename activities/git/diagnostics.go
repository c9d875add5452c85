package git

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// diagnostics takes what the git program writes to standard error. Its progress
// becomes a progress; of the rest the beginning and the end are kept, to be
// judged. Of what the other side says through the program ("remote: …") nothing
// is taken but the numbers of its own progress: it can hold any word.
type diagnostics struct {
	progress *progress
	// bytes says that the bytes are counted here, for nobody else sees them.
	bytes bool
	// maxObjects bounds the objects of a pack; exceed is called once for more.
	maxObjects int64
	exceed     func(error)

	line []byte
	head bytes.Buffer
	tail []byte
}

const (
	// maxKept bounds each half of the text that is kept.
	maxKept = 8 << 10
	// maxLine bounds a line, of which the middle is dropped.
	maxLine = 4 << 10
)

func (d *diagnostics) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexAny(p, "\r\n")
		part := p
		if end >= 0 {
			part = p[:end]
		}
		d.line = append(d.line, part...)
		if len(d.line) > maxLine {
			d.line = append(d.line[:maxLine/2], d.line[len(d.line)-maxLine/2:]...)
		}
		if end < 0 {
			break
		}
		d.take()
		p = p[end+1:]
	}
	return n, nil
}

// take deals with one line.
func (d *diagnostics) take() {
	line := d.line
	d.line = d.line[:0]
	if said, ok := bytes.CutPrefix(line, []byte("remote: ")); ok {
		d.prepared(said)
		return
	}
	if len(bytes.TrimSpace(line)) == 0 || d.progressed(line) || bytes.HasPrefix(line, []byte(cannotRun)) {
		return
	}
	if room := maxKept - d.head.Len(); room > len(line) && len(d.tail) == 0 {
		d.head.Write(line)
		d.head.WriteByte('\n')
		return
	}
	d.tail = append(append(d.tail, line...), '\n')
	if over := len(d.tail) - maxKept; over > 0 {
		d.tail = append(d.tail[:0], d.tail[over:]...)
	}
}

// text is what was kept. It is called when nothing more is written.
func (d *diagnostics) text() string {
	if len(d.line) > 0 {
		d.take()
	}
	return d.head.String() + string(d.tail)
}

// progressLine is "Receiving objects:  45% (450/1000), 1.20 MiB | 600.00 KiB/s",
// or "Enumerating objects: 9, done." where no total is known.
var progressLine = regexp.MustCompile(`^([A-Z][a-z]+(?: [a-z]+)+): +(?:\d+, done\.$|\d+$|\d+% \((\d+)/(\d+)\)(?:, (\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB))?)`)

var progressPhases = map[string]int32{
	"Receiving objects":  phaseReceiving,
	"Unpacking objects":  phaseReceiving,
	"Resolving deltas":   phaseResolving,
	"Updating files":     phaseFiles,
	"Checking out files": phaseFiles,
	"Counting objects":   phaseSending,
	"Writing objects":    phaseSending,
}

var byteUnits = map[string]float64{"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// progressed reads a line of progress, and reports whether it is one.
func (d *diagnostics) progressed(line []byte) bool {
	m := progressLine.FindSubmatch(line)
	if m == nil {
		return false
	}
	phase, ok := progressPhases[string(m[1])]
	if !ok || len(m[3]) == 0 {
		return true // "Compressing objects" and such: of no interest
	}
	done, _ := strconv.ParseInt(string(m[2]), 10, 64) // digits; too many of them are the largest number
	total, _ := strconv.ParseInt(string(m[3]), 10, 64)
	d.progress.enter(phase)
	d.progress.objects.Store(total)
	d.progress.done.Store(done)
	if d.bytes && len(m[4]) > 0 {
		if n, err := strconv.ParseFloat(string(m[4]), 64); err == nil {
			d.progress.bytes.Store(int64(n * byteUnits[string(m[5])]))
		}
	}
	if phase == phaseReceiving && total > d.maxObjects {
		d.exceed(errObjectLimit)
	}
	return true
}

// prepared reads what the remote says of the pack that it makes, which can take as
// long as the transfer: two numbers, until the pack begins to come.
func (d *diagnostics) prepared(line []byte) {
	m := progressLine.FindSubmatch(line)
	at := d.progress.phase.Load()
	if m == nil || len(m[3]) == 0 || at != phaseListing && at != phasePreparing {
		return
	}
	switch string(m[1]) {
	case "Counting objects", "Compressing objects":
		done, _ := strconv.ParseInt(string(m[2]), 10, 64)
		total, _ := strconv.ParseInt(string(m[3]), 10, 64)
		d.progress.enter(phasePreparing)
		d.progress.objects.Store(total)
		d.progress.done.Store(done)
	}
}

// scrub takes the remote's address out of what the git program said: it can hold
// any word too.
func scrub(text string, r *remote) string {
	if r == nil || r.url == "" {
		return text
	}
	return strings.ReplaceAll(text, r.url, "REMOTE")
}
