package temporalserver

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/schema/sqlite"
)

const (
	// StoreName is the file of the store in the data directory.
	StoreName = "temporal.db"

	// Layout is the number of the store's layout, kept in the file as SQLite's
	// user_version. It goes up whenever the linked server's schema or our choice
	// of indexes changes.
	Layout = 1

	// applicationID marks the file as ours ("Hold"), in SQLite's application_id.
	applicationID = 0x486f6c64

	driver = "sqlite"
)

// keptIndexes are the visibility indexes that a new store gets, in the order in
// which they are made. The schema has 58; each is written at the start and the
// close of every execution, and half of the server's work under load was that.
//
// With 100,000 executions a list or count that no index serves takes one to two
// seconds, one that an index serves some milliseconds. These serve the default
// list, the server's own divisions, the filters by status and by workflow id, and
// HoldfastState, which operators and reviews list by. The order matters: nearly
// every query also asks for an empty division, and of two indexes that serve it
// equally well SQLite takes the one made last.
var keptIndexes = []string{
	"default_idx",
	"by_temporal_namespace_division",
	"by_status",
	"by_workflow_id",
	"by_keyword_07", // HoldfastState in the order of contract.SearchAttributes
}

// fileStore is the configuration of a store in dir.
func fileStore(dir string) *config.SQL {
	return &config.SQL{
		PluginName: sqliteplugin.PluginName,
		// The name becomes the path of a URI.
		DatabaseName: (&url.URL{Path: filepath.Join(dir, StoreName)}).EscapedPath(),
		ConnectAttributes: map[string]string{
			"mode":         "rwc",
			"journal_mode": "wal",
			"synchronous":  "2", // FULL
			"busy_timeout": "10000",
		},
		MaxConns:     1,
		MaxIdleConns: 1,
	}
}

// memoryStore is the configuration of a store in memory that this process knows
// by name. It lives while a connection to it is open.
func memoryStore(name string) *config.SQL {
	return &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: "/" + name,
		ConnectAttributes: map[string]string{
			"vfs":          "memdb",
			"journal_mode": "memory",
			"synchronous":  "0",
		},
		MaxConns:     1,
		MaxIdleConns: 1,
	}
}

// openMemory makes a store in memory and returns the connection that keeps it.
func openMemory(store *config.SQL) (*sql.DB, error) {
	db, err := openPrivate(store.DatabaseName, "vfs=memdb")
	if err != nil {
		return nil, fmt.Errorf("create the store in memory: %w", err)
	}
	if err := writeSchema(db); err != nil {
		db.Close()
		return nil, fmt.Errorf("create the store in memory: %w", err)
	}
	return db, nil
}

// openFile makes the store in dir if there is none, and checks the layout of
// the one that is there.
func openFile(dir string) error {
	file := filepath.Join(dir, StoreName)
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return createFile(file)
	}
	if err != nil {
		return fmt.Errorf("look for the store: %w", err)
	}
	return checkLayout(file)
}

// createFile builds the store beside its place, makes it durable and renames
// it, so that a crash leaves a whole store or none.
func createFile(file string) error {
	part := file + ".new"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create the store: %w", err)
	}
	if err := writeFile(part); err != nil {
		return fmt.Errorf("create the store: %w", err)
	}
	if err := syncPath(part); err != nil {
		return fmt.Errorf("create the store: %w", err)
	}
	if err := os.Rename(part, file); err != nil {
		return fmt.Errorf("create the store: %w", err)
	}
	return syncPath(filepath.Dir(file))
}

// writeFile fills a file that is not in its place yet, so nothing is synced on
// the way.
func writeFile(file string) error {
	db, err := openPrivate(file, "mode=rwc")
	if err != nil {
		return err
	}
	defer db.Close()
	for _, pragma := range []string{"journal_mode=off", "synchronous=0"} {
		if _, err := db.Exec("PRAGMA " + pragma); err != nil {
			return err
		}
	}
	return writeSchema(db)
}

// writeSchema makes the schema and marks it, in one transaction.
func writeSchema(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	schema := schemaTx{tx: tx, indexes: map[string]string{}}
	if err := sqlite.SetupSchemaOnDB(schema); err != nil {
		return err
	}
	for _, name := range keptIndexes {
		if _, err := tx.Exec(schema.indexes[name]); err != nil {
			return err
		}
	}
	for _, pragma := range []string{
		fmt.Sprintf("application_id=%d", applicationID),
		fmt.Sprintf("user_version=%d", Layout),
	} {
		if _, err := tx.Exec("PRAGMA " + pragma); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// schemaTx gives a transaction the one method that SetupSchemaOnDB calls. It
// holds back the statements that make visibility indexes, by name.
type schemaTx struct {
	sqlplugin.AdminDB
	tx      *sql.Tx
	indexes map[string]string
}

func (s schemaTx) Exec(stmt string, args ...any) error {
	if words := strings.Fields(stmt); len(words) > 4 && words[1] == "INDEX" && words[4] == "executions_visibility" {
		s.indexes[words[2]] = stmt
		return nil
	}
	_, err := s.tx.Exec(stmt, args...)
	return err
}

// checkLayout reads the marks of the store without changing it.
func checkLayout(file string) error {
	db, err := openPrivate(file, "mode=rw")
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer db.Close()
	var app, layout int
	if err := db.QueryRow("PRAGMA application_id").Scan(&app); err != nil {
		return fmt.Errorf("read the layout of %s: %w", file, err)
	}
	if err := db.QueryRow("PRAGMA user_version").Scan(&layout); err != nil {
		return fmt.Errorf("read the layout of %s: %w", file, err)
	}
	if app != applicationID {
		return &SchemaError{File: file, Foreign: true, Want: Layout}
	}
	if layout != Layout {
		return &SchemaError{File: file, Found: layout, Want: Layout}
	}
	return nil
}

// openPrivate opens a store on one connection outside the plugin's pool, which never closes a
// connection.
func openPrivate(file, query string) (*sql.DB, error) {
	db, err := sql.Open(driver, "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+query)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
