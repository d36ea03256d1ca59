// Lets the compiler accept functions without a body in this package.
