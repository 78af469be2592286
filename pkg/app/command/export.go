package command

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Export writes every object of a store as JSON lines in the order of their
// uuids, without the fields that never leave the server.
// With secrets the objects have all fields: hashes of passwords, and internal ones.
func Export(ctx context.Context, c *config.Config, name string, secrets bool, w io.Writer) error {
	if c.Stores[name] == nil {
		return plan.UnknownStore(c, name)
	}
	return open.WithStores(ctx, c, "export",
		func(_ *plan.Plan, set *store.Set) error { return WriteLines(ctx, set.Store(name), w, secrets) },
		func(h hold.Holder) error {
			body, err := hold.Control(ctx, h, http.MethodGet, "/export/"+url.PathEscape(name)+"?secrets="+strconv.FormatBool(secrets), http.NoBody)
			if err != nil {
				return err
			}
			defer func() { _ = body.Close() }()
			_, err = io.Copy(w, body)
			return errs.Wrap(err, errs.Unavailable, "the export is incomplete: the connection was closed")
		})
}

// WriteLines writes every object of a store as lines of JSON; see Export.
func WriteLines(ctx context.Context, s *store.Store, w io.Writer, secrets bool) error {
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
