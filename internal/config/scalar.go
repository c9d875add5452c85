package config

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxExpandedTotal bounds what all variables together add to a configuration.
const maxExpandedTotal = 16 << 20

// text returns a scalar with its variables expanded, and whether it had any.
func (d *decoder) text(place position, n *yaml.Node) (text string, expanded, ok bool) {
	text, faults := expand(n.Value, d.env)
	for _, f := range faults {
		d.add(place, "%s", f)
	}
	expanded = text != n.Value
	if expanded {
		d.expanded += len(text)
	}
	if d.expanded > maxExpandedTotal && !d.exhausted {
		d.add(place, "larger than 16 MiB once all variables are expanded")
		d.exhausted = true
	}
	return text, expanded, len(faults) == 0 && !d.exhausted
}

// scalar decodes one value. Its messages show what was written, never what a
// variable held, and of secrets nothing at all.
func (d *decoder) scalar(place position, n *yaml.Node, v reflect.Value) {
	want := wanted(v.Type())
	switch {
	case n.Kind != yaml.ScalarNode:
		d.add(place, "expected %s, found %s", want, found(n))
		return
	case isNull(n):
		d.add(place, "expected %s, found nothing: write a value or remove the key", want)
		return
	}
	text, expanded, ok := d.text(place, n)
	if !ok {
		return
	}
	switch v.Type() {
	case durationType:
		d.duration(place, n, text, v)
		return
	case sizeType:
		size, err := ParseSize(text)
		if err != nil {
			d.add(place, "bad size %s: %v", quote(n.Value), err)
			return
		}
		v.SetInt(int64(size))
		return
	}
	plain := expanded || n.ShortTag() != "!!str"
	fits := true
	switch v.Kind() {
	case reflect.Bool:
		fits = plain && (text == "true" || text == "false")
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, 64)
		fits = plain && err == nil
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		fits = plain && err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
		if fits {
			v.SetFloat(f)
		}
	default:
		if n.ShortTag() != "!!str" {
			d.add(place, "expected text, found %s: put it in quotes", found(n))
			return
		}
		if v.Type() == secretType {
			v.Set(reflect.ValueOf(NewSecret(text)))
			return
		}
		v.SetString(text)
	}
	switch {
	case fits:
	case found(n) == "text" || strings.HasPrefix(want, found(n)):
		d.add(place, "expected %s, found %s", want, quote(n.Value))
	default:
		d.add(place, "expected %s, found %s", want, found(n))
	}
}

func wanted(t reflect.Type) string {
	switch t {
	case durationType:
		return "a duration such as 90s"
	case sizeType:
		return "a size such as 512MiB"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "text"
}

func (d *decoder) duration(place position, n *yaml.Node, text string, v reflect.Value) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		shown := ""
		if text == n.Value {
			shown = ": write " + strings.TrimSpace(text) + "s"
		}
		d.add(place, "bad duration %s: it has no unit%s", quote(n.Value), shown)
		return
	}
	parsed, err := time.ParseDuration(text)
	switch {
	case err != nil:
		d.add(place, "bad duration %s: write a number with a unit (ms, s, m, h), such as 90s or 1m30s", quote(n.Value))
	case parsed < 0:
		d.add(place, "bad duration %s: it is negative", quote(n.Value))
	default:
		v.SetInt(int64(parsed))
	}
}
