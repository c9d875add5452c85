package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// PolicyTable writes the effective numbers of p and where each comes from.
func PolicyTable(out io.Writer, p profiles.Profile) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "policy profile\t%s\t\n", p.Policy.Name)
	if p.Extends != "" {
		fmt.Fprintf(w, "extends\t%s\t\n", p.Extends)
	}
	fmt.Fprintln(w, "\t\t\nKEY\tVALUE\tFROM")
	for _, s := range p.Settings() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, s.Value, s.Origin)
	}
	return w.Flush()
}

// PolicyJSON writes what PolicyTable shows as one JSON object.
func PolicyJSON(out io.Writer, p profiles.Profile) error {
	type setting struct {
		Value string `json:"value"`
		From  string `json:"from"`
		File  string `json:"file,omitempty"`
		Line  int    `json:"line,omitempty"`
	}
	settings := map[string]setting{}
	for _, s := range p.Settings() {
		settings[s.Key] = setting{Value: s.Value, From: s.Origin.Profile, File: s.Origin.File, Line: s.Origin.Line}
	}
	return json.NewEncoder(out).Encode(map[string]any{
		"policy": p.Policy.Name, "extends": p.Extends, "settings": settings,
	})
}
