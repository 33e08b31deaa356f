import { randomBytes } from 'node:crypto'
import { Option, type Command } from 'commander'
import { onAbort } from '../base/abort-task.js'
import { consoleOf } from '../console/index.js'
import { diagnose } from '../index.js'
import { LOOPBACK } from '../page-kit/guarded-server.js'
import { hostOf, portOf } from './arguments.js'
import { ConsoleServer } from './console-server.js'
import { examine } from './doctor.js'
import { engineOption, placeOf, withBox } from './engine.js'
import { Interrupt } from './interrupt.js'
import type { Terminal } from './terminal.js'

interface ConsoleOptions {
  engine?: string
  host: string
  port: number
  readOnly?: boolean
}

export function addConsole(program: Command, { stdout, stderr }: Terminal): void {
  program
    .command('console')
    .description('serve a page that shows who holds and awaits what, until it is interrupted')
    .addOption(engineOption())
    .option(
      '--host <address>',
      'where to listen; beyond this machine, the traffic is not encrypted',
      hostOf,
      LOOPBACK,
    )
    .addOption(new Option('--port <number>', 'the port; 0 for a free one').argParser(portOf).default(0))
    .option('--read-only', 'reject releases and revocations on the page')
    .action(async ({ engine, host, port, readOnly = false }: ConsoleOptions) => {
      const url = await placeOf(engine, false)
      await withBox(
        engine,
        async box => {
          const console = consoleOf(box, {
            readOnly,
            // The full examination writes a value and removes it again.
            diagnose: () => (readOnly ? diagnose(url) : examine(url)),
            log: line => void stderr.write(`signalbox: ${line}\n`),
          })
          using interrupt = new Interrupt()
          const secret = randomBytes(24).toString('base64url')
          const server = await ConsoleServer.open(console, port, host, secret)
          stdout.write(`open ${server.url} (the part after # is a secret)\n`)
          await new Promise<void>(resolve => onAbort(interrupt.signal, resolve))
          console.close()
          await server.close()
        },
        { label: 'signalbox console' },
      )
    })
}
