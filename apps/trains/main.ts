#!/usr/bin/env node
import { trains } from './command.js'

// Standard input may stay open forever, and nothing else is left to wait for.
process.exit(await trains(process.argv.slice(2)))
