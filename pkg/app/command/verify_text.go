package command

import (
	"fmt"
	"io"
	"strings"

	"belfry/internal/count"
	"belfry/pkg/binary"
	"belfry/pkg/mapping/verify"
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	for _, d := range r.Differences {
		what := d.Source + " " + d.UUID
		if d.UUID == "" {
			what = d.Detail
		} else if d.Detail != "" {
			what += " (" + d.Detail + ")"
		}
		where := d.Target + " " + d.Holder
		if d.Array != "" {
			where += "." + d.Array
		}
		fmt.Fprintf(w, "%-9s %s: %s\n", d.Kind, where, what)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "... and %d more\n", r.More)
	}
	for _, o := range r.Full {
		fmt.Fprintf(w, "full      %s %s.%s: holds %d of %s (limit of the mapping)\n", o.Target, o.Holder, o.Array,
			o.Entries, count.Of(o.Objects, "object"))
	}
	for _, o := range r.TooLarge {
		fmt.Fprintf(w, "too large %s %s.%s: %s of %s has no entry, which would have more than %s\n", o.Target, o.Holder,
			o.Array, o.UUID, o.Source, count.Of(o.Limit, "byte"))
	}
	for _, u := range r.Unnamed {
		fmt.Fprintf(w, "unnamed   %s.%s names nothing in %s: %s, the first is %s: %s\n", u.Source, u.Key, u.Target,
			count.Of(u.Objects, "object"), u.UUID, u.Detail)
	}
	for _, d := range r.Dangling {
		fmt.Fprintf(w, "named     %s.%s names objects of %s that do not exist (onDelete: %s): "+
			"%s, the first in %s: %s\n", d.Source, d.Field, d.Target, d.OnDelete, count.Of(d.Named, "time"),
			d.UUID, d.Holder)
	}
	if r.Repaired > 0 {
		fmt.Fprintf(w, "repaired  %d\n", r.Repaired)
	}
	if r.InChunks > 0 {
		fmt.Fprintf(w, "%s with large arrays in chunks: with --repair they become whole, as largeArrays says\n",
			count.Of(r.InChunks, "object"))
	}
	if r.Pending > 0 {
		fmt.Fprintf(w, "%s not on the bus yet, so copies may still change\n", count.Of(r.Pending, "event"))
	}
	writeUnique(w, r.Unique)
	writeBinaries(w, r.Binaries)
	if r.Computed > 0 {
		fmt.Fprintf(w, "%s with computed fields\n", count.Of(r.Computed, "object"))
	}
	if r.Copied > 0 {
		fmt.Fprintf(w, "%s with copies of referenced objects\n", count.Of(r.Copied, "object"))
	}
	_, err := fmt.Fprintf(w, "%s, %s, %s, %s: %s\n", count.Of(r.Mappings, "mapping"), count.Of(r.Objects, "object"),
		count.Of(r.Targets, "target"), count.Of(r.Entries, "entry", "entries"),
		count.Of(len(r.Differences)+r.More, "difference"))
	return err
}

func writeUnique(w io.Writer, u *verify.Unique) {
	if u == nil {
		return
	}
	for _, f := range u.Findings {
		fields := strings.Join(f.Fields, ", ")
		if f.Other == "" {
			fmt.Fprintf(w, "unclaimed %s %s: its value of %s is not held for it; --repair does that\n", f.Store, f.UUID,
				fields)
		} else {
			fmt.Fprintf(w, "duplicate %s %s: %s has the same %s; change one of them\n", f.Store, f.UUID, f.Other,
				fields)
		}
	}
	if u.More > 0 {
		fmt.Fprintf(w, "... and %d more\n", u.More)
	}
	for _, name := range u.Waiting {
		fmt.Fprintf(w,
			"waiting   %s: its unique values are not compared, since belfry has not collected them all yet\n", name)
	}
	if u.Claimed > 0 {
		fmt.Fprintf(w, "claimed   %d\n", u.Claimed)
	}
	fmt.Fprintf(w, "%s with unique fields, %s, %d stale: %s\n", count.Of(u.Objects, "object"),
		count.Of(u.Claims, "value"), u.Stale, count.Of(len(u.Findings)+u.More, "difference"))
}

func writeBinaries(w io.Writer, r *binary.Report) {
	if r == nil {
		return
	}
	for _, d := range r.Differences {
		where := d.Service
		if d.Place != (binary.Place{}) {
			where += fmt.Sprintf(" %s %s.%s[%d]", d.Place.Store, d.Place.UUID, d.Place.Property, d.Place.Index)
		}
		fmt.Fprintf(w, "%-9s %s: %s\n", d.Kind, where, strings.TrimSpace(d.Hash+" "+d.Detail))
	}
	if r.More > 0 {
		fmt.Fprintf(w, "... and %d more\n", r.More)
	}
	fmt.Fprintf(w, "%s of binaries, %s, %s: %s\n", count.Of(r.Services, "service"), count.Of(r.Records, "record"),
		count.Of(r.Contents, "content"), count.Of(len(r.Differences)+r.More, "difference"))
}
