package live

// Fresh is how long a look at the present serves.
const Fresh = fresh
