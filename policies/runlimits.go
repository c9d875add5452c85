package policies

// RunLimits bounds what an agent or a caller may use (M3.16); zero fields do
// not bound.
type RunLimits struct {
	Tokens      int64
	Cost        float64
	Attempts    int
	Concurrency int
}

// RunUse is what has been used so far; Concurrency counts the other runs that
// are active.
type RunUse struct {
	Tokens      int64
	Cost        float64
	Attempts    int
	Concurrency int
}

// Reached names the first limit that forbids the next request, or "" (M3.16).
func (l RunLimits) Reached(u RunUse) string {
	switch {
	case l.Tokens > 0 && u.Tokens >= l.Tokens:
		return "tokens"
	case l.Cost > 0 && u.Cost >= l.Cost:
		return "cost"
	case l.Attempts > 0 && u.Attempts >= l.Attempts:
		return "attempts"
	case l.Concurrency > 0 && u.Concurrency >= l.Concurrency:
		return "concurrency"
	}
	return ""
}
