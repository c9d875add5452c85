package temporalserver

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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

// keptIndexes are the visibility indexes that a new store gets. The schema has
// 58; each is written at the start and the close of every execution, and half of
// the server's work under load was that. What remains serves the default list,
// look-ups by workflow id, and the server's own divisions.
var keptIndexes = []string{
	"default_idx",
	"by_workflow_id",
	"by_temporal_namespace_division",
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
// by name.
func memoryStore(name string) *config.SQL {
	return &config.SQL{
		PluginName:        sqliteplugin.PluginName,
		DatabaseName:      name,
		ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared"},
		MaxConns:          1,
		MaxIdleConns:      1,
	}
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
	if err := writeSchema(part); err != nil {
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

// writeSchema makes the schema in one transaction on a connection of its own.
// The file is not in its place yet, so nothing is synced on the way.
func writeSchema(file string) error {
	db, err := openPrivate(file, "rwc")
	if err != nil {
		return err
	}
	defer db.Close()
	for _, pragma := range []string{"journal_mode=off", "synchronous=0"} {
		if _, err := db.Exec("PRAGMA " + pragma); err != nil {
			return err
		}
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := sqlite.SetupSchemaOnDB(schemaTx{tx: tx}); err != nil {
		return err
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

// schemaTx gives a transaction the one method that SetupSchemaOnDB calls.
type schemaTx struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

func (s schemaTx) Exec(stmt string, args ...any) error {
	if droppedIndex(stmt) {
		return nil
	}
	_, err := s.tx.Exec(stmt, args...)
	return err
}

// droppedIndex reports whether stmt creates a visibility index that is not kept.
func droppedIndex(stmt string) bool {
	words := strings.Fields(stmt)
	if len(words) < 5 || words[0] != "CREATE" || words[1] != "INDEX" || words[4] != "executions_visibility" {
		return false
	}
	return !slices.Contains(keptIndexes, words[2])
}

// trimMemory drops from a store in memory the indexes that a file store never
// gets; the plugin creates the schema of such a store itself.
func trimMemory(name string) error {
	db, err := sql.Open(driver, "file:"+name+"?mode=memory&cache=shared")
	if err != nil {
		return fmt.Errorf("open the store in memory: %w", err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	drop, err := surplusIndexes(db)
	if err != nil {
		return fmt.Errorf("list the indexes of the store in memory: %w", err)
	}
	for _, name := range drop {
		if _, err := db.Exec("DROP INDEX " + name); err != nil {
			return fmt.Errorf("drop an index of the store in memory: %w", err)
		}
	}
	return nil
}

func surplusIndexes(db *sql.DB) ([]string, error) {
	rows, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'executions_visibility' AND sql IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if !slices.Contains(keptIndexes, name) {
			names = append(names, name)
		}
	}
	return names, rows.Err()
}

// checkLayout reads the marks of the store without changing it.
func checkLayout(file string) error {
	db, err := openPrivate(file, "rw")
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
		return &SchemaError{File: file, Want: Layout}
	}
	if layout != Layout {
		return &SchemaError{File: file, Found: layout, Want: Layout}
	}
	return nil
}

// openPrivate opens the file outside the plugin's pool, which never closes a
// connection.
func openPrivate(file, mode string) (*sql.DB, error) {
	db, err := sql.Open(driver, "file:"+(&url.URL{Path: file}).EscapedPath()+"?mode="+mode)
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
