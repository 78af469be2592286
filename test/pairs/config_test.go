package pairs

import "strings"

// configuration has all four features, and what they meet. It is text that cells change by replacing a part.
const configuration = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
authentication: {providers: {email: {postValidation: true, skipEmailValidation: true}}}
stores:
  Users: {expose: {restrict: {create: true}}, policy: {get: isOwner}}
  Cooks:
    expose: {list: true}
    uuid: client
    fields: {phone: {read: user != null}}
    intercept: {update: [{name: editor, timeout: 1m}]}
  Recipes:
    expose: {list: true}
    uuid: client
    references: {cook: {store: Cooks, onDelete: restrict}}
    copies: {chef: cook.name, phone: {from: cook.phone, read: user != null}}
    computed: {label: 'chef + ": " + string(ratings)'}
    search: {fields: [title, chef]}
    indexes: [cook, chef, phone, label, ratings, "chef, ratings"]
    policy: {create: "true", get: "true", update: '!has(object.chef) || object.chef != "Locked"', delete: object.ratings < 3}
    intercept: {update: [{name: editor, timeout: 1m}]}
  Ratings:
    expose: {list: true}
    uuid: client
    references: {recipe: {store: Recipes, required: true, onDelete: cascade}}
    copies: {chef: recipe.chef, open: recipe.open, dish: recipe.label}
    computed: {about: 'recipe + "/" + chef'}
    search: {fields: [text]}
    unique: ["recipe, by"]
    indexes: [recipe, chef, dish]
    policy: {create: linked.recipe.open, get: linked.recipe.open, update: "true", delete: "true", list: object.open == true}
    fields:
      pinned: {write: linked.recipe.pins}
      mark: {write: 'linked.recipe.label == "Ada: 1"'}
    map: {Recipes: {key: recipe, aggregates: {ratings: count(), stars: sum(stars), best: max(stars)}}}
    intercept:
      save: [{name: editor, timeout: 1m}]
      update: [{name: editor, timeout: 1m}]
  Likes:
    expose: {list: true}
    uuid: client
    references: {rating: {store: Ratings, onDelete: clear}, recipes: {store: Recipes, onDelete: clear}, dish: {store: Recipes, onDelete: restrict}}
    fields: {dish: {read: user != null}}
    computed: {of: 'rating + "!"'}
    unique: ["rating, by"]
  Steps: {expose: {}, uuid: client, references: {after: {store: Steps, onDelete: restrict}}}
  Albums:
    expose: {list: true}
    uuid: client
    owner: user
    policy: {create: user != null, get: object.open == true || isOwner, update: isOwner, delete: isOwner}
    fields: {likes: {read: isOwner}}
    indexes: [photos, likes]
  Photos:
    expose: {}
    uuid: client
    owner: user
    references: {album: {store: Albums, required: true, onDelete: cascade}}
    copies: {title: {from: album.title, read: "true"}}
    policy: {create: user != null, get: linked.album.open || isOwner, update: linked.album.open, delete: isOwner}
    fields: {tip: {read: linked.album.tips}}
    map:
      Albums: {key: album, sameOwner: true, when: source.shown == true, aggregates: {photos: count(), likes: sum(likes)}}
`

// bare is the configuration without the four features: every property is a client's.
var bare = func() string {
	var lines []string
	skip := ""
	for line := range strings.Lines(configuration) {
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if skip != "" && len(indent) > len(skip) {
			continue
		}
		skip = ""
		if name, keys, ok := strings.Cut(line, ": {expose: {}, uuid: client"); ok && keys != "" { // of a store in one line
			line = name + ": {expose: {}, uuid: client}\n"
		}
		switch key, _, _ := strings.Cut(strings.TrimSpace(line), ":"); key {
		case "references", "copies", "computed", "map", "policy", "fields", "indexes", "unique", "intercept", "search":
			skip = indent
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}()

// with returns the configuration with other parts: former ones and new ones in turn.
func with(parts ...string) string {
	text := configuration
	for i := 0; i < len(parts); i += 2 {
		if strings.Count(text, parts[i]) != 1 {
			panic("the configuration does not have exactly one " + parts[i])
		}
		text = strings.Replace(text, parts[i], parts[i+1], 1)
	}
	return text
}
