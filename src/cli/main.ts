#!/usr/bin/env node
import { EXIT } from './exit-status.js'
import { complaint } from './failure.js'
import { signalbox } from './signalbox.js'

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever reads the output may have had enough, as `head` has; that is no failure of this command.
  if (error.code === 'EPIPE') return
  process.stderr.write(complaint(error))
  process.exit(EXIT.failed)
})

process.exitCode = await signalbox(process.argv.slice(2), process)
