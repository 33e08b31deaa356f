import { Option, type Command } from 'commander'
import { onAbort } from '../base/abort-task.js'
import { companion } from '../base/companion.js'
import { diagnose } from '../index.js'
import { hostOf, portOf } from './arguments.js'
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
    .description(
      'serve a page that shows who holds and awaits what, until it is interrupted; needs signalbox-console',
    )
    .addOption(engineOption())
    .option(
      '--host <address>',
      'where to listen; beyond this machine, the traffic is not encrypted',
      hostOf,
      '127.0.0.1',
    )
    .addOption(new Option('--port <number>', 'the port; 0 for a free one').argParser(portOf).default(0))
    .option('--read-only', 'reject releases and revocations on the page')
    .action(async ({ engine, host, port, readOnly = false }: ConsoleOptions) => {
      const url = await placeOf(engine, false)
      const { serveConsole } = await companion(
        'the console',
        'signalbox-console',
        import('signalbox-console'),
      )
      await withBox(
        engine,
        async box => {
          using interrupt = new Interrupt()
          const served = await serveConsole(box, {
            host,
            port,
            readOnly,
            // The full examination writes a value and removes it again.
            diagnose: () => (readOnly ? diagnose(url) : examine(url)),
            log: line => void stderr.write(`signalbox: ${line}\n`),
          })
          stdout.write(`open ${served.url} (the part after # is a secret)\n`)
          await new Promise<void>(resolve => onAbort(interrupt.signal, resolve))
          await served.close()
        },
        { label: 'signalbox console' },
      )
    })
}
