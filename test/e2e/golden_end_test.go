package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/event"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/test/kit"
)

// unread returns the mails that the script has not read.
func (g *golden) unread() (found []string, err error) {
	all, err := g.s.allMails()
	for _, m := range all {
		if g.read[m.To]--; g.read[m.To] < 0 {
			g.masks.codesOf(m.Subject, m.Text)
			found = append(found, g.masks.mask(textOf(m), false))
		}
	}
	return found, err
}

// announcements are published to those who listen, and not kept in the log.
var announcements = []event.Name{event.StoreSave, event.StoreUpdate, event.StoreDelete, event.StoreGet}

// idents is the array that a mapping keeps in users.
var idents = regexp.MustCompile(`"idents":\[([^]]*)\],?`)

// sortIdents sorts these arrays in a text.
func sortIdents(text string) string {
	return idents.ReplaceAllStringFunc(text, func(found string) string {
		all := strings.Split(idents.FindStringSubmatch(found)[1], "},{")
		if len(all) == 1 {
			return found
		}
		all[0], all[len(all)-1] = strings.TrimPrefix(all[0], "{"), strings.TrimSuffix(all[len(all)-1], "}")
		slices.Sort(all)
		return `"idents":[{` + strings.Join(all, "},{") + "}]" + found[strings.LastIndexByte(found, ']')+1:]
	})
}

// events returns all events: announcements, those of the log, and dead letters, while belfry does not run.
func (g *golden) events() ([]string, error) {
	counts := map[string]int{}
	count := func(subject string, data []byte) {
		if gjson.GetBytes(data, "origin").Str != event.OriginMapping {
			counts[g.masks.mask(subject+"\n"+idents.ReplaceAllString(string(data), ""), false)]++
		}
	}
	close(g.announced)
	for m := range g.announced {
		count(m.Subject, m.Data)
	}
	for e := range counts {
		counts[e] = 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	b, err := bus.Open(ctx,
		bus.Options{Server: embedded.New(embedded.Options{Folder: filepath.Join(g.s.folder, "data", "bus")})})
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close(ctx) }()
	r := recorder{conn: b.Conn()}
	if err := errors.Join(r.readStream(ctx, bus.StreamEvents, ">"),
		r.readStream(ctx, bus.StreamDead, ">")); err != nil {
		return nil, err
	}
	for _, m := range r.messages {
		count(m.subject, m.data)
	}
	var all []string
	for e, n := range counts {
		if n > 1 && !g.repeats {
			e += fmt.Sprintf("\n%d times", n)
		}
		all = append(all, e)
	}
	return all, nil
}

// accountStores are the stores of accounts.
var accountStores = []string{"Users", "Idents", "Sessions", "Tokens"}

// records returns what the stores of accounts hold, internal fields as well, while belfry does not run.
func (g *golden) records() (all []string, err error) {
	ctx := context.Background()
	backend, err := filestore.Open(filepath.Join(g.s.folder, "data", "stores", "default"), filestore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	for _, name := range accountStores {
		s, err := backend.Open(ctx, driver.Spec{Name: name})
		if err != nil {
			return nil, err
		}
		for r, err := range driver.Records(ctx, s, 100) {
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			if err := json.Indent(&b, []byte(sortIdents(string(r.Body))), "", "  "); err != nil {
				return nil, err
			}
			text := g.masks.mask(name+" "+r.UUID+"\n"+b.String(), false)
			if g.repeats {
				text = withoutRepeated(text)
			}
			all = append(all, text)
		}
		// A belfry that was stopped has published all events.
		pending, _, err := s.Pending(ctx, nil, 100)
		if len(pending) > 0 {
			err = fmt.Errorf("%d events of %s are not published, among them %s", len(pending), name, pending[0].Payload)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// element is one of an array of objects that a record has.
var element = regexp.MustCompile(`(?m)^    \{\n(      .*\n)*    \},?\n`)

// withoutRepeated removes each element of an array that equals the one before.
func withoutRepeated(record string) string {
	last := ""
	return element.ReplaceAllStringFunc(record, func(found string) string {
		found = strings.ReplaceAll(found, "},\n", "}\n")
		if found == last {
			return ""
		}
		last = found
		return found
	})
}
