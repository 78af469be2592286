package query

import (
	"errors"
	"slices"

	"belfry/pkg/errs"
)

// missing is the error of a list that would be supported if indexes were declared.
type missing struct {
	err   *errs.Error
	needs []order // of each index
}

func (m *missing) Error() string { return m.err.Error() }

// Unwrap returns the error for clients.
func (m *missing) Unwrap() error { return m.err }

// maxFields is how many fields an index has at most.
const maxFields = 4

// Needed returns the indexes of which an error of Parse says that one has to be declared; nil for another error. With them
// the list may need others.
func Needed(err error) (all []Index) {
	var m *missing
	if !errors.As(err, &m) {
		return nil
	}
	for _, fields := range m.needs {
		index := NewIndex(fields.names())
		if len(fields) > 0 && len(fields) <= maxFields && !slices.ContainsFunc(all, func(i Index) bool { return i.Name == index.Name }) {
			all = append(all, index)
		}
	}
	return all
}
