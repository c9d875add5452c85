package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DefaultFile is read where no file is named.
const DefaultFile = "holdfast.yaml"

// Variable names the environment variable that names the file (I1).
const Variable = "HOLDFAST_CONFIG"

// maxFileSize is in bytes.
const maxFileSize = 4 << 20

// Env looks up an environment variable, as os.LookupEnv does. A nil Env knows
// none.
type Env = func(name string) (value string, ok bool)

// ReadError says that the file itself could not be read.
type ReadError struct {
	Path string
	Err  error
}

// Error says which file, and what to look at.
func (e *ReadError) Error() string {
	if errors.Is(e.Err, fs.ErrNotExist) {
		return fmt.Sprintf("configuration %s does not exist: check --config and %s", e.Path, Variable)
	}
	return fmt.Sprintf("configuration %s cannot be read: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// LoadDefault loads the file that the flag names, else the one that
// HOLDFAST_CONFIG names, else ./holdfast.yaml (I1). A named file must exist;
// without ./holdfast.yaml the configuration is empty. Errors are as of Load.
func LoadDefault(flag string, env Env) (*Config, error) {
	if flag == "" && env != nil {
		flag, _ = env(Variable)
	}
	if flag != "" {
		return Load(flag, env)
	}
	c, err := Load(DefaultFile, env)
	if errors.Is(err, fs.ErrNotExist) {
		return Parse("", nil, env)
	}
	return c, err
}

// Load reads and checks a file. The error is a *ReadError, or Errors with all
// problems of the file; both mean exit status 2 (I1).
func Load(path string, env Env) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &ReadError{path, err}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, &ReadError{path, err}
	}
	return Parse(path, data, env)
}

// Parse checks a configuration in memory; file is only its name. The error is
// of type Errors.
func Parse(file string, data []byte, env Env) (*Config, error) {
	d := &decoder{
		problems: problems{file: file},
		env:      env,
		values:   map[string]position{},
		keys:     map[string]position{},
	}
	c := &Config{file: file}
	root := d.document(data)
	if err := d.err(); err != nil {
		return nil, err
	}
	if root != nil {
		d.decode("", root, reflect.ValueOf(c).Elem(), 0)
	}
	c.setDefaults()
	if !d.exhausted {
		(&checker{decoder: d, c: c}).check()
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// document parses the one document of a file; nil means that it is empty.
func (d *decoder) document(data []byte) *yaml.Node {
	start := position{1, 1}
	if len(data) > maxFileSize {
		d.add(start, "the file is larger than 4 MiB")
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case errors.Is(err, io.EOF):
		return first.Content[0]
	case err != nil:
		d.syntax(data, err)
	default:
		d.add(at(&second), "a second document begins here: a configuration is one document")
	}
	return nil
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	yamlQuoted = regexp.MustCompile(`'[^'\s]{4,}'`)
)

// syntax reports what the YAML parser said, which names a line at most, at the
// first character of that line.
func (d *decoder) syntax(data []byte, err error) {
	message := err.Error()
	place := position{1, 1}
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		message = message[len(m[0]):]
		if line, err := strconv.Atoi(m[1]); err == nil {
			place.line = line
			if strings.HasPrefix(message, "did not find expected") {
				place.line++ // the parser, unlike the scanner, counts from zero
			}
		}
	}
	lines := strings.SplitN(string(data), "\n", place.line+1)
	if place.line <= len(lines) {
		line := lines[place.line-1]
		indent := len(line) - len(strings.TrimLeft(line, " "))
		place.column = indent + 1
		if strings.HasPrefix(line[indent:], "\t") {
			d.add(place, "not valid YAML: a tab cannot indent, use spaces")
			return
		}
	}
	if strings.HasPrefix(message, "did not find expected ','") {
		message += "; inside { } and [ ], ${NAME} must stand in quotes"
	}
	d.add(place, "not valid YAML: %s", yamlQuoted.ReplaceAllString(message, "'…'"))
}
