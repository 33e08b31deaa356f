#!/usr/bin/env node
import { trains } from './command.js'

// Exits explicitly, because standard input may stay open forever.
process.exit(await trains(process.argv.slice(2)))
