package git

// limits bound what one operation may take, for a remote can send anything: a
// small pack that unfolds without end, or an endless list of objects (G12).
type limits struct {
	// memory of each process, and disk of the operation, in bytes.
	memory, disk int64
	// objects of a pack.
	objects int64
}

// defaultLimits are those of git.limits.
var defaultLimits = limits{memory: 512 << 20, disk: 10 << 30, objects: 5_000_000}

// or fills in what is not set from d.
func (l limits) or(d limits) limits {
	if l.memory == 0 {
		l.memory = d.memory
	}
	if l.disk == 0 {
		l.disk = d.disk
	}
	if l.objects == 0 {
		l.objects = d.objects
	}
	return l
}
