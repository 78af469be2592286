package fill

import (
	"strings"
	"testing"

	"belfry/pkg/store/driver"
)

// Objects whose entries a release before has left out, for the escapes of a client alone, are written once, with an
// event. Others are not.
func TestEntriesThatEscapesMadeTooLargeAreFilled(t *testing.T) {
	i := newInstallation(t)
	mappings := books("title")
	mappings[0].MaxBytes, mappings[0].MaxEntry = 16<<10, 1024
	set := i.process(mappings).set
	save(i, set.Store("Authors"), "a0", `{}`)
	titles := map[string]string{"left-out": strings.Repeat(`\u4e2d`, 300), "small": strings.Repeat(`\u4e2d`, 30),
		"large": strings.Repeat(`\u4e2d`, 3000), "plain": "T"}
	for uuid, title := range titles {
		save(i, set.Store("Books"), uuid, `{"author":"a0","title":"T"}`)
		r, _, err := i.store("Books").Get(t.Context(), uuid)
		i.must(err)
		body := strings.Replace(string(r.Body), `"title":"T"`, `"title":"`+title+`"`, 1)
		i.must(i.store("Books").Put(t.Context(), driver.Write{
			UUID: uuid, IfRevision: r.Revision, Revision: r.Revision + 1, Body: []byte(body),
			Keys: []driver.Key{{Index: "map.author", Parts: [][]byte{[]byte("a0")}}},
		}))
	}
	before := map[string]uint64{}
	for uuid := range titles {
		before[uuid] = i.revision(uuid)
	}
	pending, _, err := i.store("Books").Pending(t.Context(), nil, 100)
	i.must(err)
	i.process(mappings).start().fillAndEnd()
	for uuid, revision := range before {
		if written := i.revision(uuid) != revision; written != (uuid == "left-out") {
			t.Errorf("%s was written: %t", uuid, written)
		}
	}
	now, _, err := i.store("Books").Pending(t.Context(), nil, 100)
	if i.must(err); len(now) != len(pending)+1 {
		t.Errorf("%d events are pending, before it were %d", len(now), len(pending))
	}
	r, _, err := i.store("Books").Get(t.Context(), "left-out")
	if i.must(err); strings.Contains(string(r.Body), `\u`) {
		t.Errorf("it is %s", r.Body)
	}
	again := i.process(mappings).start()
	again.fillAndEnd()
	if strings.Contains(again.logged.String(), "escapes") {
		t.Errorf("it is looked for again:\n%s", again.logged)
	}
}
