package pairs

// passing are the features that replace the process, the configuration or the place of objects.
var passing []column
