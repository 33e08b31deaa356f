import type { Command } from 'commander'
import { keyOf } from './arguments.js'
import { engineOption, withBox, type EngineOptions } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { printable, printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'

export function addRevoke(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('revoke')
    .description(
      'release everything that a session holds and cancel its waiters, without waiting for its lease to expire: for ' +
        'processes that are known to be dead. A live process is notified that it lost its locks',
    )
    .argument('<session>', 'the session, as `ls` shows it', keyOf)
    .addOption(engineOption())
    .option('--json', 'print a line of JSON')
    .action(async (session: string, { engine, json }: EngineOptions) => {
      const revoked = await withBox(engine, box => box.revoke(session))
      if (revoked === 0) {
        throw new CommandError(`session ${session} holds nothing and waits for nothing`, EXIT.failed)
      }
      if (json) return void stdout.write(`${printableJson({ session, requests: revoked })}\n`)
      stdout.write(`revoked ${revoked} ${revoked === 1 ? 'request' : 'requests'} of ${printable(session)}\n`)
    })
}
