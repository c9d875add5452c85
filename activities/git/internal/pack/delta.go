package pack

// deltaSize reads one of the sizes at the beginning of a delta.
func deltaSize(b []byte) (size int64, rest []byte, ok bool) {
	for shift := 0; len(b) > 0 && shift < 63; shift += 7 {
		c := b[0]
		b = b[1:]
		size |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			return size, b, size >= 0
		}
	}
	return 0, nil, false
}

// targetSize is the size of what a delta makes of its base.
func targetSize(base, delta []byte) (int64, error) {
	source, rest, ok := deltaSize(delta)
	if !ok || source != int64(len(base)) {
		return 0, ErrDamaged
	}
	target, _, ok := deltaSize(rest)
	if !ok {
		return 0, ErrDamaged
	}
	return target, nil
}

// patch applies a delta to its base and appends the result, which has size
// bytes, to into.
func patch(into, base, delta []byte, size int64) ([]byte, error) {
	_, delta, _ = deltaSize(delta)
	_, delta, _ = deltaSize(delta)
	if int64(cap(into)) < size {
		into = make([]byte, 0, size)
	}
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			n := int(op)
			if n == 0 || n > len(delta) || int64(len(into)+n) > size {
				return nil, ErrDamaged
			}
			into = append(into, delta[:n]...)
			delta = delta[n:]
			continue
		}
		from, n, rest, ok := copied(op, delta)
		delta = rest
		if !ok || from+n > int64(len(base)) || int64(len(into))+n > size {
			return nil, ErrDamaged
		}
		into = append(into, base[from:from+n]...)
	}
	if int64(len(into)) != size {
		return nil, ErrDamaged
	}
	return into, nil
}

// copied reads which part of the base an instruction copies.
func copied(op byte, delta []byte) (from, n int64, rest []byte, ok bool) {
	for bit := range 7 {
		if op&(1<<bit) == 0 {
			continue
		}
		if len(delta) == 0 {
			return 0, 0, nil, false
		}
		if bit < 4 {
			from |= int64(delta[0]) << (8 * bit)
		} else {
			n |= int64(delta[0]) << (8 * (bit - 4))
		}
		delta = delta[1:]
	}
	if n == 0 {
		n = 0x10000
	}
	return from, n, delta, true
}
