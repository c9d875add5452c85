package config

import (
	"fmt"
	"strings"
)

// maxExpanded bounds what variables may make of one value.
const maxExpanded = 1 << 20

// expand replaces ${NAME} by the variable's value; $${ stands for a literal
// ${. The texts of its errors name the variable.
func expand(s string, env func(string) (string, bool)) (string, []string) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	var out strings.Builder
	var faults []string
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		if i > 0 && s[i-1] == '$' {
			out.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		out.WriteString(s[:i])
		name, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed {
			faults = append(faults, "${ has no closing }: write ${NAME}, or $${ for a literal ${")
			s = ""
			break
		}
		s = rest
		value, fault := lookup(name, env)
		if fault != "" {
			faults = append(faults, fault)
			if len(faults) == maxErrors {
				return "", faults
			}
		}
		if out.WriteString(value); out.Len() > maxExpanded {
			return "", append(faults, "larger than 1 MiB once its variables are expanded")
		}
	}
	out.WriteString(s)
	return out.String(), faults
}

func lookup(name string, env func(string) (string, bool)) (value, fault string) {
	if !variableName(name) {
		return "", fmt.Sprintf("bad variable name %s: write ${NAME} with letters, digits and underscores, or $${ for a literal ${", quote(name))
	}
	if env != nil {
		if v, ok := env(name); ok {
			return v, ""
		}
	}
	return "", fmt.Sprintf("the environment variable %s is not set: set it, or remove this key", name)
}

func variableName(s string) bool {
	if s == "" || len(s) > 200 || '0' <= s[0] && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_':
		default:
			return false
		}
	}
	return true
}
