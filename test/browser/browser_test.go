// Package browser uses the pages of belfry as people do: in a real browser, on one belfry.
package browser

import (
	"image"
	"image/png"
	"strings"
	"testing"
)

const (
	address  = "ada@example.com"
	password = "a fine password"
)

// TestPages is all tests of this package: each part uses the belfry and the browser as the part before left them.
// A part that needs other objects makes them, in stores or under names of its own.
func TestPages(t *testing.T) {
	f := start(t)
	if !t.Run("first hour", f.testFirstHour) {
		return
	}
	f.fillStores(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"web example", f.testWebExample},
		{"MongoDB", f.testMongoDB},
		{"application", f.testApplication},
		{"login", f.testLogin},
		{"views", f.testViews},
		{"operating", f.testOperating},
		{"objects", f.testObjects},
		{"references", f.testReferences},
		{"forms", f.testForms},
		{"recipe site", f.testRecipeSite},
		{"markup", f.testMarkup},
		{"schemas", f.testSchemas},
		{"users", f.testUsers},
		{"second factor", f.testSecondFactor},
		{"system", f.testSystem},
		{"api", f.testAPI},
		{"live", f.testLive},
		{"end of rights", f.testEndOfRights},
		{"pages", f.testPages},
	} {
		if !t.Run(part.name, part.run) && part.name == "login" {
			return
		}
		f.checkComplaints(t)
	}
	f.checkPictures(t)
}

// fillStores creates what the pages show.
func (f *fixture) fillStores(t *testing.T) {
	t.Helper()
	for _, o := range []struct{ path, body string }{
		{"/authors", `{"uuid":"lovelace","name":"Ada Lovelace"}`},
		{"/books", `{"uuid":"sense-and-sensibility","author":"austen","title":"Sense and Sensibility","year":1811}`},
		{"/books", `{"uuid":"pride-and-prejudice","author":"austen","title":"Pride and Prejudice","year":1813}`},
		{"/books", `{"uuid":"mansfield-park","author":"austen","title":"Mansfield Park","year":1814}`},
		{"/books", `{"uuid":"emma","author":"austen","title":"Emma","year":1815}`},
		{"/books", `{"uuid":"persuasion","author":"austen","title":"Persuasion","year":1817}`},
		{"/books", `{"uuid":"notes","author":"lovelace","title":"Notes on the Analytical Engine","year":1843}`},
		{"/reviews",
			`{"uuid":"scott-1816","book":"emma","stars":5,"text":"A style of novel that has arisen almost in our own times"}`},
	} {
		f.request(t, "POST", o.path, o.body, nil)
	}
	f.request(t, "PUT", "/binary/upload/Books/emma/covers/add", cover(t), nil, "Content-Type", "image/png",
		"Content-Disposition", `attachment; filename="cover.png"`)
	f.request(t, "POST", "/auth/email", `{"register":true,"login":"bob@example.com","password":"another password"}`,
		nil, "User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
}

// cover is a picture of 40 by 60 points.
func cover(t *testing.T) string {
	t.Helper()
	picture := image.NewGray(image.Rect(0, 0, 40, 60))
	for i := range picture.Pix {
		picture.Pix[i] = byte(4 * (i / 40))
	}
	var b strings.Builder
	if err := png.Encode(&b, picture); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// testLogin logs in as an admin.
func (f *fixture) testLogin(t *testing.T) {
	f.open(t, "/console")
	f.at(t, "/console/login")
	f.good(t, "console-login")
	f.fill(t, "#login", "bob@example.com")
	f.fill(t, "#password", "another password")
	f.press(t, "Log in")
	f.shows(t, "not an admin")
	f.good(t, "console-not-admin")
	f.press(t, "Log out")
	f.fill(t, "#login", address)
	f.fill(t, "#password", "wrong")
	f.press(t, "Log in")
	f.shows(t, "wrong")
	f.fill(t, "#password", password)
	f.keysIn(t, "#password", "\r")
	f.at(t, "/console/objects")
}
