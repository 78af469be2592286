package app

import (
	"slices"
	"strings"
	"testing"

	"belfry/pkg/app/plan"
)

// The size of an array of copies stops at the limit of the array. Each expression that takes it has a note that names
// the remedy.
func TestNotesNameSizesOfArraysThatStop(t *testing.T) {
	const text = `listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Users: {}
  Recipes:
    expose: {}
    owner: user
    references: {book: Books}
    policy: {create: '%s', get: '%s', update: isOwner}
    fields: {title: {write: "size(object.tags) < 5 && size(linked.book.pages) < 9"}}
    computed: {many: "size(comments) > 3 && tags.all(comments, size(comments) > 1)", few: tags.size(), liked: object.likes.size()}
    map: {Users: {key: user, target: recipes}}
  Books: {}
  Pages: {map: {Books: {key: book, target: pages, aggregates: {pages_count: count()}}}}
  Comments: {map: {Recipes: {key: recipe, target: comments, limit: 7}}}
  Likes: {map: {Recipes: {key: recipe, target: likes, maxBytes: 2KiB}}}
`
	p := newPlace(t, "listen: 127.0.0.1:0\n")
	c := p.load(strings.Replace(strings.Replace(text, "%s", `size(user["recipes"]) < 2`, 1), "%s",
		`object.comments.exists(object, size(object.likes) > 1)`, 1))
	if err := plan.Check(c); err != nil {
		t.Fatal(err)
	}
	all := plan.Notes(c)
	for i, want := range []string{
		"stores.Recipes.computed.liked: in the expression at 1:1: the size of Recipes.likes stops at the limit of the " +
			"array, 10000 entries or 2048 bytes; ",
		"stores.Recipes.computed.many: in the expression at 1:6: the size of Recipes.comments stops at the limit of the " +
			"array, 7 entries or 1048576 bytes; to count all objects, add aggregates: {NAME: count()} to " +
			"stores.Comments.map.Recipes",
		"stores.Recipes.policy.create: in the expression at 1:6: the size of Users.recipes stops at ",
		"stores.Recipes.fields.title.write: in the expression at 1:31: the size of Books.pages stops at the limit of " +
			"the array, 10000 entries or 1048576 bytes; pages_count counts all objects",
	} {
		if i >= len(all) || !strings.Contains(all[i], want) {
			t.Errorf("note %d is not %s", i, want)
		}
	}
	if len(all) != 4 || slices.ContainsFunc(plan.Warnings(c), func(w string) bool { return strings.Contains(w, "size") }) {
		t.Errorf("the notes are\n%s\nand the warnings\n%s", strings.Join(all, "\n"), strings.Join(plan.Warnings(c), "\n"))
	}
}
