package pairs

import "strings"

// reading are the features that show what was written.
var reading = []column{
	{name: "computed", references: computedReferences, copies: computedCopies, aggregates: computedAggregates,
		linked: computedLinked},
	{name: "search", copies: searchCopies, linked: searchLinked},
	{name: "lists", references: listsReferences, copies: listsCopies, aggregates: listsAggregates, linked: listsLinked},
	{name: "expand", references: expandReferences, copies: expandCopies, aggregates: expandAggregates,
		linked: expandLinked},
	{name: "events", references: eventsReferences, copies: eventsCopies, aggregates: eventsAggregates,
		linked: eventsLinked},
}

// What is computed of a reference is computed again when a worker clears it.
func computedReferences(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.try(201, `POST /likes {"uuid":"@like","rating":"@1","recipes":["@stew","@soup"]}`, `"of":"@1!"`)
	c.try(204, `DELETE /ratings/@1`)
	c.until("/likes/@like", `!"rating"`, `!"of"`, `"recipes":["@stew","@soup"]`)
	c.try(204, `DELETE /recipes/@soup`)
	c.until("/likes/@like", `"recipes":["@stew"]`)
}

// What is computed of a copy has its value with the write, and follows its source.
func computedCopies(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup"}`, `"about":"@soup/Ada"`)
	c.try(200, `PATCH /ratings/@1 {"recipe":"@stew","about":"x"}`, `"about":"@stew/Bob"`)
	c.try(200, `PATCH /cooks/@bob {"name":"Ben"}`)
	c.until("/ratings/@1", `"about":"@stew/Ben"`)
}

// What is computed of an aggregate follows what is counted, and so does its copy.
func computedAggregates(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.until("/recipes/@soup", `"label":"Ada: 1"`)
	c.rate(c.own("@2"), c.own("@soup"), 1)
	c.until("/recipes/@soup", `"label":"Ada: 2"`)
	c.until("/ratings/@1", `"dish":"Ada: 2"`)
	c.try(204, `DELETE /ratings/@2`)
	c.until("/ratings/@1", `"dish":"Ada: 1"`)
}

// A rule sees what is computed of the named object's copies and aggregates.
func computedLinked(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup"}`)
	c.until("/recipes/@soup", `"label":"Ada: 1"`)
	c.try(200, `PATCH /ratings/@1 {"mark":true}`)
	c.try(401, `POST /ratings {"uuid":"@2","recipe":"@stew","mark":true}`)
	c.try(200, `PATCH /cooks/@ada {"name":"Ann"}`)
	c.until("/recipes/@soup", `"label":"Ann: 1"`)
	c.try(401, `PATCH /ratings/@1 {"mark":false}`)
}

// A search finds the copy that there is.
func searchCopies(c *cell) {
	c.try(201, `POST /cooks {"uuid":"@cy","name":"Cynthia"}`)
	c.try(201, `POST /recipes {"uuid":"@pie","cook":"@cy","title":"blueberry"}`)
	c.until("/recipes?q=cynthia", `"@pie"`)
	c.try(200, `PATCH /cooks/@cy {"name":"Wilhelmina"}`)
	c.until("/recipes?q=wilhelmina+blueberry", `"@pie"`)
	c.until("/recipes?q=cynthia", `!"@pie"`)
}

// A search shows what a list shows: it follows the copy of the linked value.
func searchLinked(c *cell) {
	c.kitchen()
	c.try(201, `POST /ratings {"uuid":"@1","recipe":"@soup","text":"marvelous"}`)
	c.until("/ratings?q=marvelous", `"@1"`)
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.until("/ratings?q=marvelous", `!"@1"`)
	c.try(200, `PATCH /recipes/@soup {"open":true}`)
	c.until("/ratings?q=marvelous", `"@1"`)
}

// Objects are listed by what they name, also when that is gone.
func listsReferences(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.rate(c.own("@2"), c.own("@stew"), 1)
	const list = "/ratings?filter=recipe+%3D%3D+%22@soup%22"
	c.until(list, `"@1"`, `!"@2"`)
	c.try(200, `PATCH /ratings/@2 {"recipe":"@soup"}`)
	c.until(list, `"@1"`, `"@2"`)
	c.try(204, `DELETE /recipes/@soup`)
	c.until(list, `"items":[]`)
}

// A list is filtered and sorted by copies, page by page.
func listsCopies(c *cell) {
	c.kitchen()
	c.until("/recipes?filter=chef+%3D%3D+%22Ada%22+%26%26+cook+%3D%3D+%22@ada%22", `"@soup"`, `!"@stew"`)
	c.try(200, `PATCH /cooks/@ada {"name":"@Zoe"}`)
	c.try(200, `PATCH /cooks/@bob {"name":"@Yve"}`)
	const list = "/recipes?filter=chef+%3E%3D+%22@A%22+%26%26+chef+%3C+%22@a%22"
	c.until(list, `"@soup"`, `"@stew"`)
	c.pages(list+"&sort=-chef", "@soup", "@stew")
	c.pages(list+"&sort=chef", "@stew", "@soup")
}

// A list is sorted by aggregates, page by page.
func listsAggregates(c *cell) {
	c.kitchen()
	c.try(200, `PATCH /cooks/@ada {"name":"@Cook"}`)
	c.try(200, `PATCH /cooks/@bob {"name":"@Cook"}`)
	c.rate(c.own("@1"), c.own("@stew"), 1)
	const list = "/recipes?filter=chef+%3D%3D+%22@Cook%22"
	c.until(list, `"@soup"`, `"@stew"`)
	c.until(list+"+%26%26+ratings+%3E+0", `"@stew"`, `!"@soup"`)
	c.until(list+"+%26%26+ratings+%3D%3D+0", `"@soup"`, `!"@stew"`)
	c.pages(list+"&sort=-ratings", "@stew", "@soup")
	c.rate(c.own("@2"), c.own("@soup"), 1)
	c.rate(c.own("@3"), c.own("@soup"), 1)
	c.until(list+"+%26%26+ratings+%3E+1", `"@soup"`)
	c.pages(list+"&sort=-ratings", "@soup", "@stew")
}

// pages requires that a list, an object a page, has objects in order.
func (c *cell) pages(path string, want ...string) {
	c.Helper()
	cursor := ""
	for _, uuid := range want {
		r := c.try(200, "GET "+path+"&limit=1"+cursor, `"uuid":"`+uuid+`"`)
		cursor = "&cursor=" + field(r, "cursor")
	}
}

// A list follows the copy, and with it what a get says at once.
func listsLinked(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.rate(c.own("@2"), c.own("@stew"), 1)
	c.until("/ratings?filter=recipe+%3D%3D+%22@soup%22", `"@1"`)
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.try(401, `GET /ratings/@1`)
	c.until("/ratings?filter=recipe+%3D%3D+%22@soup%22", `"items":[]`)
	c.try(200, `PATCH /ratings/@2 {"recipe":"@soup"}`)
	c.until("/ratings?filter=recipe+%3D%3D+%22@stew%22", `"items":[]`)
	c.try(200, `PATCH /recipes/@soup {"open":true}`)
	c.until("/ratings?filter=recipe+%3D%3D+%22@soup%22", `"@1"`, `"@2"`)
}

// Each reference is expanded, in gets and in lists, and one that names nothing is left out.
func expandReferences(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.try(200, `GET /recipes/@soup?expand=cook`, `"_expanded":{"cook":{"uuid":"@ada"`)
	c.try(201, `POST /likes {"uuid":"@like","rating":"@1","recipes":["@stew","@soup","@none"]}`)
	c.try(200, `GET /likes/@like?expand=recipes,rating`, `"title":"stew"`, `"title":"soup"`, `"by":"@1"`)
	c.try(204, `DELETE /ratings/@1`)
	c.until("/likes/@like?expand=recipes,rating", `"title":"stew"`, `!"by"`)
}

// An expanded object has its copies, without those that the reader may not read.
func expandCopies(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.try(200, `GET /ratings/@1?expand=recipe`, `"chef":"Ada","cook":"@ada"`, `!phone`)
	c.as("ann").try(200, `GET /ratings/@1?expand=recipe`, `"phone":"11"`)
	c.as("ann").try(200, `GET /ratings/@1?expand=recipe&fields=uuid,recipe.phone`, `"phone":"11"`)
	c.try(200, `GET /ratings/@1?expand=recipe&fields=uuid,recipe.phone`, `!phone":`)
}

// An expanded object has its aggregates, without those that the reader may not read.
func expandAggregates(c *cell) {
	ann := c.as("ann")
	ann.try(201, `POST /albums {"uuid":"@album","open":true}`)
	ann.try(201, `POST /photos {"uuid":"@photo","album":"@album","shown":true,"likes":7}`)
	ann.until("/albums/@album", `"likes":7`)
	ann.try(200, `GET /photos/@photo?expand=album`, `"likes":7,"open":true,"photos":1`)
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.until(`/ratings/@1?expand=recipe`, `"ratings":1`, `"best":1`)
}

// An object that the named one hides is not expanded.
func expandLinked(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.try(201, `POST /likes {"uuid":"@like","rating":"@1"}`)
	c.try(200, `GET /likes/@like?expand=rating`, `"_expanded":{"rating"`)
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.try(200, `GET /likes/@like?expand=rating`, `"rating":"@1"`, `!"_expanded":{"rating"`)
}

// What a deletion clears is an event.
func eventsReferences(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.try(201, `POST /likes {"uuid":"@like","recipes":["@soup"]}`)
	recipes, likes := c.stream("store=Recipes"), c.stream("uuid=@like")
	c.try(204, `DELETE /recipes/@soup`)
	recipes("Store.Deleted", `"@soup"`)
	likes("Store.Updated", `"@like"`, `"recipes":[]`)
}

// A copy that changes is an event, with what its receiver may read.
func eventsCopies(c *cell) {
	c.kitchen()
	events, all := c.stream("uuid=@soup"), c.as("ann").stream("uuid=@soup")
	c.try(200, `PATCH /cooks/@ada {"name":"Ann","phone":"55"}`)
	events("Store.Updated", `"chef":"Ann"`, `!phone`)
	all("Store.Updated", `"chef":"Ann"`, `"phone":"55"`)
	moved := c.stream("store=Recipes&filter=chef+%3D%3D+%22Bob%22")
	c.try(200, `PATCH /cooks/@bob {"name":"Ben"}`)
	moved("left", `"@stew"`)
	if r := c.do("GET /events?store=Recipes&filter=phone+%3D%3D+%2255%22"); r.status != 401 {
		c.Errorf("a filter by what may not be read is %d", r.status)
	}
}

// An aggregate that changes is an event of its object.
func eventsAggregates(c *cell) {
	c.kitchen()
	events := c.stream("uuid=@soup")
	many := c.stream("store=Recipes&filter=ratings+%3E+1")
	c.rate(c.own("@1"), c.own("@soup"), 3)
	events("Store.Updated", `"ratings":1`, `"best":3`, `"label":"Ada: 1"`)
	c.rate(c.own("@2"), c.own("@soup"), 4)
	many("Store.Updated", `"@soup"`, `"ratings":2`)
	c.try(204, `DELETE /ratings/@2`)
	many("left", `"@soup"`)
}

// Events of an object that the named one hides are not sent.
func eventsLinked(c *cell) {
	c.kitchen().rate(c.own("@1"), c.own("@soup"), 1)
	c.rate(c.own("@2"), c.own("@stew"), 1)
	events := c.stream("uuid=@1,@2")
	c.try(200, `PATCH /ratings/@1 {"text":"first"}`)
	events("Store.Updated", `"text":"first"`)
	c.try(200, `PATCH /recipes/@soup {"open":false}`)
	c.until("/ratings?filter=recipe+%3D%3D+%22@soup%22", `"items":[]`)
	c.try(200, `PATCH /ratings/@1 {"text":"second"}`, `!second`)
	c.try(200, `PATCH /ratings/@2 {"text":"mark"}`)
	if sent := events("Store.Updated", `"text":"mark"`); strings.Contains(sent, "second") {
		c.Errorf("of a hidden object is sent %s", sent)
	}
	c.try(200, `PATCH /recipes/@soup {"open":true}`)
	events("Store.Updated", `"@1"`, `"open":true`, `"text":"second"`)
}
