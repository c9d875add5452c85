package profiles

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/policies"
	"go.yaml.in/yaml/v3"
)

// channelKeys are what a user may try in order to set P1.1–P1.5.
var channelKeys = []string{
	"channel", "channels", "discord", "telegram", "retry", "send", "flood_wait", "gateway", "gateway_reconnect", "reconnect",
}

// group reads the mapping node into p. set collects the keys that were read.
func (d *decoder) group(p *policies.Policy, node *yaml.Node, prefix, what string, set map[string]*yaml.Node) {
	known := keysIn(prefix)
	for _, entry := range d.pairs(node, what, "") {
		key := prefix + entry.name
		switch f, ok := fieldOf(key); {
		case prefix == "" && entry.name == "extends":
			d.word(entry.value, "extends")
		case ok:
			if problem := f.read(p, entry.value); problem != "" {
				d.fail(entry.value, "%s: %s", key, problem)
				continue
			}
			set[key] = entry.key
		case len(keysIn(key+".")) > 0:
			d.group(p, entry.value, key+".", key, set)
		case prefix == "" && slices.Contains(channelKeys, entry.name):
			d.fail(entry.key, "%q: channel timings (P1.1–P1.5) are built in and cannot be set; remove the key", entry.name)
		default:
			d.fail(entry.key, "unknown key %q%s", entry.name, didYouMean(entry.name, withExtends(prefix, known)))
		}
	}
}

func withExtends(prefix string, known []string) []string {
	if prefix != "" {
		return known
	}
	return append(slices.Clone(known), "extends")
}

func (d *decoder) word(node *yaml.Node, key string) {
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" || node.Value == "" {
		d.fail(node, "%s: want the name of a policy profile", key)
	}
}

// checkOrder refuses a least value above its greatest, at the key that this
// profile set.
func (d *decoder) checkOrder(p *policies.Policy, node *yaml.Node, set map[string]*yaml.Node) {
	for _, pair := range ordered {
		if strings.HasPrefix(pair[0], "simple.") && p.Simple == nil {
			continue
		}
		low, _ := fieldOf(pair[0])
		high, _ := fieldOf(pair[1])
		if low.number(p) <= high.number(p) {
			continue
		}
		at := node
		for _, key := range pair {
			if set[key] != nil {
				at = set[key]
			}
		}
		d.fail(at, "%s (%s) is above %s (%s)", pair[0], show(low.at(p)), pair[1], show(high.at(p)))
	}
}

// checkSimple refuses a simple policy of which a part is missing: a profile
// that does not extend one of the simple ones has to give all of it.
func (d *decoder) checkSimple(p *Profile, node *yaml.Node) {
	if p.Policy.Simple == nil {
		return
	}
	var missing []string
	for _, key := range keysIn("simple.") {
		if _, ok := p.Origins["simple."+key]; !ok {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		d.fail(node, "simple lacks %s; say \"extends: simple\" to inherit them", strings.Join(missing, ", "))
	}
}

// read sets the field from node, or says what is wrong with it.
func (f field) read(p *policies.Policy, node *yaml.Node) (problem string) {
	switch v := f.at(p).(type) {
	case *int:
		return f.readInt(v, node)
	case *float64:
		return f.readFloat(v, node)
	case *bool:
		return readBool(v, node)
	case *string:
		return f.readWord(v, node)
	case *time.Duration:
		return readDuration(v, node)
	case *[]time.Duration:
		return readList(v, node, readDuration)
	case *[]string:
		return readList(v, node, readString)
	case *[]policies.Reason:
		return readList(v, node, func(r *policies.Reason, n *yaml.Node) string { return f.readWord((*string)(r), n) })
	}
	return "cannot be set"
}

func (f field) readInt(v *int, node *yaml.Node) string {
	n, err := strconv.Atoi(node.Value)
	if node.ShortTag() != "!!int" || err != nil || float64(n) < f.min || float64(n) > f.max {
		return fmt.Sprintf("want a whole number from %g to %g, not %s", f.min, f.max, written(node))
	}
	*v = n
	return ""
}

func (f field) readFloat(v *float64, node *yaml.Node) string {
	x, err := strconv.ParseFloat(node.Value, 64)
	numeric := node.ShortTag() == "!!int" || node.ShortTag() == "!!float"
	if !numeric || err != nil || math.IsNaN(x) || x < f.min || x > f.max {
		return fmt.Sprintf("want a number from %g to %g, not %s", f.min, f.max, written(node))
	}
	*v = x
	return ""
}

func readBool(v *bool, node *yaml.Node) string {
	b, err := strconv.ParseBool(node.Value)
	if node.ShortTag() != "!!bool" || err != nil {
		return fmt.Sprintf("want true or false, not %s", written(node))
	}
	*v = b
	return ""
}

func (f field) readWord(v *string, node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode || !slices.Contains(f.words, node.Value) {
		return fmt.Sprintf("want one of %s, not %s%s", strings.Join(f.words, ", "), written(node), didYouMean(node.Value, f.words))
	}
	*v = node.Value
	return ""
}

func readString(v *string, node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" || node.Value == "" {
		return fmt.Sprintf("want a name, not %s", written(node))
	}
	*v = node.Value
	return ""
}

func readDuration(v *time.Duration, node *yaml.Node) string {
	d, err := time.ParseDuration(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil || d < 0 {
		return fmt.Sprintf("want a duration such as \"90s\" or \"1h30m\", not %s", written(node))
	}
	if d%time.Millisecond != 0 {
		return fmt.Sprintf("want whole milliseconds, not %s", written(node))
	}
	*v = d
	return ""
}

func readList[T any](v *[]T, node *yaml.Node, read func(*T, *yaml.Node) string) string {
	if node.Kind != yaml.SequenceNode {
		return fmt.Sprintf("want a list, not %s", written(node))
	}
	out := make([]T, len(node.Content))
	for i, item := range node.Content {
		if problem := read(&out[i], target(item)); problem != "" {
			return fmt.Sprintf("item %d: %s", i+1, problem)
		}
	}
	*v = out
	return ""
}

// written is a value as an error shows it.
func written(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if node.ShortTag() == "!!null" {
		return "nothing"
	}
	return strconv.Quote(node.Value)
}
