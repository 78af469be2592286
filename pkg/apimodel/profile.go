package apimodel

import (
	"maps"
	"slices"
	"strings"

	"belfry/config"
)

// Profile is what users edit of themselves on the page of their account.
type Profile struct {
	Name    string   // the property with the name; "": it can't be edited there
	NoGet   bool     // users can't be read over HTTP
	Picture *Picture // nil: there is no picture
}

// Picture is the property whose first file is the picture of a user.
type Picture struct {
	Service, Property string
	Types             []string // media types of pictures that it takes
	MaxSize           int64    // bytes
	Upload, Delete    bool     // the routes that change it exist
	URL               string   // of the service, if its files can be read; "" if not
	Thumb             string   // the size in which it is shown; "": it is not shown
}

// fallbackName is the property that names users if the configuration has no title of the user store.
const fallbackName = "name"

// profile returns what users edit of themselves: nothing unless the API has a route to update users.
func (k *Contract) profile(c *config.Config) Profile {
	users := k.Login.Users
	if users == nil || users.Expose == nil || users.Expose.Restrict.Update {
		return Profile{}
	}
	p := Profile{Name: users.nameProperty(c.Stores[users.Name]), NoGet: users.Expose.Restrict.Get}
	for _, only := range []bool{true, false} {
		if p.Picture == nil {
			p.Picture = k.picture(c, only)
		}
	}
	return p
}

// nameProperty returns the property with the name of a user: the one of the title, or else name, unless a schema does
// not know that. "" if there are several, and if clients don't set it.
func (s *Store) nameProperty(c *config.Store) string {
	name := fallbackName
	switch len(c.Title) {
	case 0:
		if s.compiled != nil && !s.compiled.Knows(name) {
			return ""
		}
	case 1:
		name = c.Title[0]
	default:
		return ""
	}
	kept, _ := s.serverProperties(c)
	_, refers := c.References[name]
	if kept[name] || refers || name == s.Owner || c.NeverRead(name) || slices.Contains(s.ReadOnly, name) {
		return ""
	}
	return name
}

// picture returns the first property of the files of users that takes pictures: one that takes nothing else, or with
// only false, any.
func (k *Contract) picture(c *config.Config, only bool) *Picture {
	users := k.Login.Users
	for _, name := range slices.Sorted(maps.Keys(c.Binaries)) {
		b := c.Binaries[name]
		of := b.Map[users.Name]
		for _, property := range of.Names {
			limits := of.Each[property]
			all := limits.Types
			if all == nil {
				all = b.Types
			}
			types := pictureTypes(all)
			if len(types) == 0 || only && len(types) != len(all) || c.Stores[users.Name].NeverRead(property) {
				continue
			}
			p := &Picture{Service: name, Property: property, Types: types, MaxSize: b.MaxSize,
				Upload: !b.Restrict.Create, Delete: !b.Restrict.Delete}
			if limits.MaxSize > 0 {
				p.MaxSize = limits.MaxSize
			}
			if !b.Restrict.Get && !users.Expose.Restrict.Get {
				p.URL = b.URL
				if len(b.Thumbs) > 0 {
					p.Thumb = b.Thumbs[0].String()
				}
			}
			return p
		}
	}
	return nil
}

// pictureTypes returns the media types of pictures among those that a place takes; nil are all.
func pictureTypes(all []string) []string {
	if all == nil {
		return []string{"image/*"}
	}
	return slices.DeleteFunc(slices.Clone(all), func(media string) bool { return !strings.HasPrefix(media, "image/") })
}
