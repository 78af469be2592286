package walk

import "time"

// Kind is the purpose of a walk.
type Kind string

// The kinds. Their names are values of a label of metrics.
const (
	Mapping  Kind = "mapping"  // the arrays of a mapping
	Computed Kind = "computed" // the computed properties of a store
	Copies   Kind = "copies"   // the copies of referenced objects in a store
	Unique   Kind = "unique"   // the claims of unique values of a store
	Search   Kind = "search"   // the search index of a store
	Cascade  Kind = "cascade"  // objects of a store that a cascade should have deleted, after missed events
	Index    Kind = "index"    // the indexes of a store in its backend
	Upgrade  Kind = "upgrade"  // what a release before did not do

	Aggregates Kind = "aggregates" // the aggregates of a mapping
)

// Status is how far something is that is derived from all objects of a store: by the last walk, or the one in progress.
type Status struct {
	Kind Kind
	Name string // unique among those of a kind

	Store         string // whose objects a walk passes over
	Source, Array string // of a mapping, whose target the store is; without Array: of its aggregates

	Filled    bool // it has what all objects make of it
	Repairing bool // it is filled again, as events were missed
	Running   bool // a walk is in progress, in this process or another, or was interrupted
	Waiting   bool // for processes with another configuration to end, if there are any
	Others    bool // a process with another configuration is known to run
	Refuses   bool // requests that depend on it are refused until it is filled

	Began, Ended time.Time // of the walk; zero without one
	Total        int64     // objects when it began, approximately
	Counts
}

// State says how far it is, without numbers.
func (s *Status) State() string {
	switch {
	case s.Repairing && s.Waiting, !s.Filled && s.Waiting:
		return "waiting for other processes"
	case s.Repairing:
		return "repairing after missed events"
	case s.Running:
		return "in progress"
	case !s.Filled:
		return "due"
	case s.Failed > 0:
		return "complete, but for some"
	default:
		return "complete"
	}
}
