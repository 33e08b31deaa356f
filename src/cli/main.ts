#!/usr/bin/env node
import { signalbox } from './signalbox.js'

// Whoever reads the output may have had enough, as `head` has; that is no failure of this command.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

process.exitCode = await signalbox(process.argv.slice(2), process)
