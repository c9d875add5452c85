package config

import (
	"reflect"
	"strings"
)

// field is one key of a mapping.
type field struct {
	key   string
	index []int
	oneOf []string
	rng   string
	typ   reflect.Type
}

// fieldsOf lists the keys of a struct in the order of their declaration. The
// struct tags are the schema: `yaml` names the key, `oneof` its possible words, `range` says
// "positive", "not negative" or "memory" of numbers.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || key == "-" {
			continue
		}
		if option == "inline" {
			for _, in := range fieldsOf(f.Type) {
				in.index = append([]int{i}, in.index...)
				fields = append(fields, in)
			}
			continue
		}
		var oneOf []string
		if words := f.Tag.Get("oneof"); words != "" {
			oneOf = strings.Split(words, "|")
		}
		fields = append(fields, field{key, []int{i}, oneOf, f.Tag.Get("range"), f.Type})
	}
	return fields
}

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

func fieldNamed(fields []field, key string) (field, bool) {
	for _, f := range fields {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}
