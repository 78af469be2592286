package console

import (
	"context"
	"encoding/json"
	"time"
)

// ModelEditor changes the configuration for admins.
type ModelEditor interface {
	// Document returns the configuration. Errors: Conflict if the file is not what belfry serves; Unavailable if there
	// is no file.
	Document(ctx context.Context) (*ModelDocument, error)

	// Propose validates a change, and returns what it would do. Nothing changes. Errors: those of Document; Mismatch if
	// the configuration is no longer that of the draft; Denied for what admins do not change; Invalid.
	Propose(ctx context.Context, d *ModelDraft) (*ModelProposal, error)

	// Apply makes a change: all of it or, with an error, nothing. Errors: those of Propose; Invalid for a change that
	// has problems; Denied where this process does not write its file.
	Apply(ctx context.Context, d *ModelDraft, by ModelActor) (*ModelVersion, error)

	// Versions returns the latest changes, the newest first.
	Versions(ctx context.Context) ([]ModelVersion, error)

	// ProposeUndo is Propose for the reverse of a change. Errors: Conflict if a later change touches the same files.
	ProposeUndo(ctx context.Context, number int) (*ModelProposal, error)

	// Undo makes the reverse of a change.
	Undo(ctx context.Context, number int, base string, by ModelActor) (*ModelVersion, error)
}

// ModelDocument is the configuration as admins may see it.
type ModelDocument struct {
	File     string // path
	Base     string // what a draft begins with
	ReadOnly string // why this process does not write the file; "" if it does
	Values   ModelValues
	Hidden   []string            // keys whose values are not shown: secrets, and what is from the environment
	Schemas  map[string][]byte   // texts, by store
	Shared   map[string][]string // other stores with the same file of a schema, by store
}

// ModelValues returns the value of a key as JSON, as the file has it.
type ModelValues func(path ...string) ([]byte, bool)

// ModelDraft is a change of the configuration.
type ModelDraft struct {
	Base    string // of the document that the admin has seen
	Changes []ModelChange
	Schemas map[string]json.RawMessage // the new texts, by store

	// Secrets are the texts of the keys of changes that are secret, by key. A proposal needs none.
	Secrets map[string]string

	Confirmed string // the name of the store or the property that is removed, as the admin has repeated it
}

// ModelChange sets a key to a value, or removes it.
type ModelChange struct {
	Path   []string
	Value  json.RawMessage // nil removes the key
	Secret bool            // the value is a text of ModelDraft.Secrets, and is written to a file of its own
}

// ModelProposal is what a change would do.
type ModelProposal struct {
	Base     string
	Keys     []string // that change
	Files    []ModelFile
	Problems []ModelProblem // because of which the change is refused
	Warnings []string       // what is doubtful in the configuration, and was not before
	Effects  []string       // what belfry will do with the objects that there are
	ReadOnly string         // as in ModelDocument
}

// ModelFile is a file that a change replaces, without secrets.
type ModelFile struct {
	Name          string
	Before, After string // "" if it does not exist
	New           bool
	Secret        bool // its content is not shown
}

// ModelProblem is a problem of a proposed configuration.
type ModelProblem struct {
	Key, Message string
	Line         int // of the proposed file; 0 if it concerns none
}

// ModelActor is the admin who makes a change.
type ModelActor struct{ UUID, Name, Request, Address, UserAgent string }

// ModelVersion is a change that was made.
type ModelVersion struct {
	Number   int
	At       time.Time
	Actor    string // uuid
	Name     string // of the admin at that time
	Keys     []string
	Undoable bool // the files are as the change has left them
	Undoes   int  // the number of the change that this one has reversed; 0 for none
	Building []string
}
