#!/usr/bin/env node
import { runChaos } from './command.js'

// Exits at once, because the client of a peer may keep connections open.
process.exit(await runChaos(process.argv.slice(2)))
