package command

import (
	"bufio"
	"context"
	"io"
	"slices"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/store"
)

// ExportRequest asks for the objects of a store.
type ExportRequest struct {
	Store   string    `json:"store"`
	Secrets bool      `json:"secrets,omitempty"` // with all fields: hashes of passwords, and internal ones
	To      io.Writer `json:"-"`
}

// Export writes every object of a store as JSON lines in the order of their
// uuids, without the fields that never leave the server.
var Export = Operation[ExportRequest, none, none]{
	Name: "export", Path: "/export", Broken: "; the export lacks objects",
	Check: func(c *config.Config, q ExportRequest) error {
		if c.Stores[q.Store] == nil {
			return plan.UnknownStore(c, q.Store)
		}
		return nil
	},
	Output: func(q *ExportRequest) *io.Writer { return &q.To },
	Run: func(ctx context.Context, at *Place, q ExportRequest, _ func(none)) (*none, error) {
		s := at.Set.Store(q.Store)
		if s == nil {
			return nil, plan.UnknownStore(at.Plan.Config, q.Store)
		}
		return &none{}, writeLines(ctx, s, q.To, q.Secrets)
	},
}

// writeLines writes every object of a store as lines of JSON; see Export.
func writeLines(ctx context.Context, s *store.Store, w io.Writer, secrets bool) error {
	const pageSize = 500
	out := bufio.NewWriterSize(w, 64<<10)
	for o, err := range s.All(ctx, pageSize) {
		if err != nil {
			return err
		}
		if !secrets {
			o.Body = s.Rules().Visible(o.Body)
		}
		if _, err := out.Write(append(slices.Clip(o.Body), '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
