package temporalserver

import "fmt"

// InUseError says that another process has the data directory open.
type InUseError struct {
	Dir string
	// PID is the process that holds it, 0 when unknown.
	PID int
}

func (e *InUseError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("data directory %s is in use by %s: stop it, or choose another directory with --data", e.Dir, holder)
}

// PortInUseError says that an address to listen on is taken.
type PortInUseError struct {
	Address string
	// Flag is the command line flag that sets the address.
	Flag string
}

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("address %s is in use: stop what listens there, or choose another with %s (port 0 takes a free one)", e.Address, e.Flag)
}

// AddressError says that an address cannot be listened on as written.
type AddressError struct {
	Address string
	// Flag is the command line flag that sets the address.
	Flag string
	// Reason says what is wrong with it.
	Reason string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("cannot listen on %q: %s; give %s an IP address and a port, such as 127.0.0.1:7233", e.Address, e.Reason, e.Flag)
}

// SchemaError says that a store has a layout that this build does not read.
// Stores are not migrated: the server's SQLite schema has no upgrade path.
type SchemaError struct {
	File string
	// Foreign is whether the file was not written by Holdfast.
	Foreign bool
	// Found is the layout of the file.
	Found int
	// Want is the layout that this build reads and writes.
	Want int
}

func (e *SchemaError) Error() string {
	switch {
	case e.Foreign:
		return fmt.Sprintf("%s was not written by holdfast: choose another directory with --data", e.File)
	case e.Found > e.Want:
		return fmt.Sprintf("%s has layout %d, newer than layout %d of this build: run the newer holdfast that wrote it, or choose another directory with --data", e.File, e.Found, e.Want)
	}
	return fmt.Sprintf("%s has layout %d, older than layout %d of this build: finish its work with the holdfast that wrote it, then start this one on another directory with --data", e.File, e.Found, e.Want)
}

// AttributeLimitError says that a namespace has no free column for a search
// attribute; the store has ten for keywords.
type AttributeLimitError struct {
	Namespace string
	Attribute string
}

func (e *AttributeLimitError) Error() string {
	return fmt.Sprintf("search attribute %s does not fit: namespace %s already has %d keyword attributes; remove one, or choose another directory with --data", e.Attribute, e.Namespace, keywordColumns)
}
