import { type Command, InvalidArgumentError } from 'commander'
import { keyOf } from './arguments.js'
import { type EngineOptions, engineOption, withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError } from './failure.js'
import { printable, printableJson } from '../base/printable.js'
import type { Terminal } from './terminal.js'

interface ReleaseOptions extends EngineOptions {
  token: bigint
}

export function addRelease(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('release')
    .description('release a lock by force: its holder is notified that it lost the lock')
    .argument('<key>', 'one of the keys of the grant; all of its keys are released', keyOf)
    .requiredOption('--token <number>', 'the token of the grant, as `ls` shows it', token)
    .addOption(engineOption())
    .option('--json', 'print a line of JSON')
    .action(async (key: string, { engine, json, token }: ReleaseOptions) => {
      const released = await withBox(engine, box => box.forceRelease(key, token))
      if (!released) throw new CommandError(`${key} has no holder with token ${token}`, EXIT.failed)
      stdout.write(
        json ? `${printableJson({ key, token: String(token) })}\n` : `released ${printable(key)}\n`,
      )
    })
}

/** Tokens fit a signed 64-bit column. */
const MAX_TOKEN = 2n ** 63n - 1n

function token(text: string): bigint {
  const number = /^\d{1,19}$/.test(text) ? BigInt(text) : -1n
  if (number < 0n || number > MAX_TOKEN) {
    throw new InvalidArgumentError('It must be a token such as 1773761422222221312.')
  }
  return number
}

export function addResume(program: Command, stdout: Terminal['stdout']): void {
  program
    .command('resume')
    .description('end the pause of a limiter and of all its keys, or of one key, in all processes')
    .argument('<name>', 'the name of the limiter, as `ls` shows it', keyOf)
    .argument('[key]', 'only this key', keyOf)
    .addOption(engineOption())
    .option('--json', 'print a line of JSON')
    .action(async (name: string, key: string | undefined, { engine, json }: EngineOptions) => {
      const resumed = await withBox(engine, box => box.resumeLimiter(name, key))
      const what = key === undefined ? `limiter ${name}` : `key ${key} of limiter ${name}`
      if (resumed === 0) throw new CommandError(`${what} is not paused`, EXIT.failed)
      stdout.write(
        json ? `${printableJson({ limiter: name, key, resumed })}\n` : `resumed ${printable(what)}\n`,
      )
    })
}

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
