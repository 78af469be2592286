package backup

import (
	"context"
	"fmt"
	"time"

	"belfry/pkg/errs"
)

// Keep says which backups stay: the latest ones, and the latest of each of so many hours,
// days, weeks, months and years that have any. Zeros keep all.
type Keep struct{ Last, Hourly, Daily, Weekly, Monthly, Yearly int }

// kept returns which of the backups stay, given their ids, the oldest first. Hours and
// days are those of UTC; weeks begin on Monday.
func (k Keep) kept(ids []string) map[string]bool {
	stays := map[string]bool{}
	if k == (Keep{}) {
		for _, id := range ids {
			stays[id] = true
		}
		return stays
	}
	for _, rule := range []struct {
		n      int
		period func(time.Time) string
	}{
		{k.Last, nil},
		{k.Hourly, func(t time.Time) string { return t.Format("2006010215") }},
		{k.Daily, func(t time.Time) string { return t.Format("20060102") }},
		{k.Weekly, func(t time.Time) string { year, week := t.ISOWeek(); return fmt.Sprint(year, " ", week) }},
		{k.Monthly, func(t time.Time) string { return t.Format("200601") }},
		{k.Yearly, func(t time.Time) string { return t.Format("2006") }},
	} {
		periods := map[string]bool{}
		for i := len(ids) - 1; i >= 0 && len(periods) < rule.n; i-- {
			period := ids[i]
			if rule.period != nil {
				period = rule.period(timeOf(ids[i]))
			}
			if !periods[period] {
				periods[period], stays[ids[i]] = true, true
			}
		}
	}
	if n := len(ids); n > 0 {
		stays[ids[n-1]] = true
	}
	return stays
}

// Pruned is the result of Prune.
type Pruned struct {
	Backups []string `json:"backups"`
	Parts   int64    `json:"parts"`
	Bytes   int64    `json:"bytes"`
}

// Prune removes the backups that a retention does not keep, and then the contents of the
// destination that no backup has: also those of backups that were interrupted. No backup
// may be in progress: confirm, which may be nil, returns an error if another process has
// taken over.
func Prune(ctx context.Context, d *Destination, keep Keep, confirm func(context.Context) error) (*Pruned, error) {
	ids, err := d.IDs(ctx)
	if err != nil {
		return nil, err
	}
	out, stays := &Pruned{Backups: []string{}}, keep.kept(ids)
	used, lists := map[string]bool{}, map[Part]bool{}
	var z codec
	defer z.close()
	for _, id := range ids {
		if !stays[id] {
			continue
		}
		m, err := d.Manifest(ctx, id)
		if err == nil {
			err = d.use(ctx, &z, m, used, lists)
		}
		if err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "nothing is removed, because not all is known that is in use")
		}
	}
	// Manifests first: removed contents must not be in an existing backup.
	for _, id := range ids {
		if stays[id] {
			continue
		}
		if err := d.deleteManifest(ctx, id); err != nil {
			return out, err
		}
		out.Backups = append(out.Backups, id)
	}
	for after := ""; ; {
		page, next, err := d.storage.List(ctx, after, contentPage)
		if err != nil {
			return out, d.wrap(err)
		}
		if confirm != nil {
			if err := confirm(ctx); err != nil {
				return out, err
			}
		}
		for _, info := range page {
			if used[info.Hash] {
				continue
			}
			if err := d.storage.Delete(ctx, info.Hash); err != nil {
				return out, d.wrap(err)
			}
			out.Parts++
			out.Bytes += info.Size
		}
		if after = next; next == "" {
			return out, nil
		}
	}
}

// use adds the hashes of all that a backup has. Lists that were read for another backup are not read again.
func (d *Destination) use(ctx context.Context, z *codec, m *Manifest, used map[string]bool, lists map[Part]bool) error {
	if err := m.eachPart(func(_ string, p Part) error { used[p.Hash] = true; return nil }); err != nil {
		return err
	}
	for _, b := range m.Binaries {
		for _, list := range b.Lists {
			if lists[list] {
				continue
			}
			lists[list] = true
			if err := d.hashes(ctx, z, b.Name, list,
				func(p Part) error { used[p.Hash] = true; return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}
