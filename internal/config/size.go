package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as 512MiB.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize reads a whole number with a unit: B, KiB, MiB, GiB or TiB.
func ParseSize(s string) (Size, error) {
	digits := strings.TrimRight(s, "BKMGTikmgtb ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("write a whole number with a unit, such as 512MiB")
	}
	unit := strings.TrimSpace(s[len(digits):])
	if unit == "" {
		return 0, fmt.Errorf("it has no unit: write %dMiB, or another of B, KiB, MiB, GiB, TiB", n)
	}
	for _, u := range sizeUnits {
		if u.name != unit {
			continue
		}
		if n > math.MaxInt64/u.bytes {
			return 0, fmt.Errorf("it is too large")
		}
		return Size(n * u.bytes), nil
	}
	return 0, fmt.Errorf("the units are B, KiB, MiB, GiB and TiB")
}

// String writes the size with the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if int64(s)%u.bytes == 0 && (s != 0 || u.bytes == 1) {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalYAML encodes String.
func (s Size) MarshalYAML() (any, error) { return s.String(), nil }
