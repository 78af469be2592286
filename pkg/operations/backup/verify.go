package backup

import (
	"context"
	"io"
)

// Verify reads every part of a backup and compares it with its hash. It returns an
// error for the first that is missing or damaged.
func Verify(ctx context.Context, d *Destination, m *Manifest, progress func(Progress)) error {
	var z codec
	defer z.close()
	done := int64(0)
	check := func(what string, p Part) error {
		in, err := d.open(ctx, what, p)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		if _, err = io.Copy(io.Discard, in); err == nil && progress != nil {
			done++
			progress(Progress{What: m.ID, Done: done})
		}
		return err
	}
	if err := m.eachPart(check); err != nil {
		return err
	}
	for _, b := range m.Binaries {
		for _, list := range b.Lists {
			err := d.hashes(ctx, &z, b.Name, list, func(p Part) error { return check("content of binaries."+b.Name, p) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}
