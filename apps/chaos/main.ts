#!/usr/bin/env node
import { runChaos } from './command.js'

// A peer's client may keep connections, and nothing else is left to wait for.
process.exit(await runChaos(process.argv.slice(2)))
