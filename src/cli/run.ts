import { Option, type Command } from 'commander'
import { systemClock } from '../clock.js'
import { BusyError, LostError, TimedOutError } from '../errors.js'
import type { Box, Claim, Grant } from '../index.js'
import { slotAt } from '../once.js'
import { pause } from '../pause.js'
import { duration, keysOf, permitsOf, textOf } from './arguments.js'
import { withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError, EndedWith } from './failure.js'
import { Interrupt } from './interrupt.js'
import type { Terminal } from './terminal.js'
import { tellingWaits } from './waits.js'
import { failureOf, teller, work, type Surroundings } from './work.js'
import { addWorkOptions, labelOf, type WorkFlags } from './work-options.js'

interface RunOptions extends WorkFlags {
  lock: readonly string[]
  shared?: boolean
  permits?: { permits: number; max: number }
  wait?: number
  skipIfBusy?: boolean
  holdAtLeast?: number
  oncePer?: string
}

interface RunSurroundings extends Surroundings {
  readonly stderr: Terminal['stderr']
}

/** Adds `signalbox run`. */
export function addRun(program: Command, { stderr }: Terminal): void {
  const run = program
    .command('run')
    .description('run a command under locks; its status is that of the command')
    .usage('--lock NAME [options] -- COMMAND...')
    .argument('<command...>', 'the command and its arguments')
    .addOption(
      new Option('--lock <name>', 'a lock to hold; several are held together')
        .argParser(keysOf)
        .makeOptionMandatory(),
    )
    .option('--shared', 'together with others that run shared')
    .addOption(
      new Option('--permits <n/m>', 'together with others, as far as there are permits')
        .argParser(permitsOf)
        .conflicts('shared'),
    )
    .addOption(
      new Option('--wait <time>', 'how long to wait (default: as long as it takes)').argParser(duration),
    )
    .option('--skip-if-busy', 'do nothing, and say that all is well, when the lock is held elsewhere')
    .addOption(
      new Option(
        '--hold-at-least <time>',
        'keep the lock that long, also when the command is faster',
      ).argParser(duration),
    )
    .addOption(
      new Option(
        '--once-per <slot>',
        'do nothing when it was done for this slot: 1h or 1d is that of the wall clock in UTC, any other text a name',
      ).argParser(textOf),
    )
  addWorkOptions(run).action(async (command: readonly string[], options: RunOptions) => {
    // Refuses what is wrong before anything is opened.
    if (options.oncePer !== undefined) await slotAt('--once-per', options.oncePer, Date.now())
    const tell = teller(stderr, options.json === true)
    using interrupt = new Interrupt()
    const status = await withBox(
      options.engine,
      box => runUnder(box, command, options, { tell, interrupt: interrupt.signal, stderr }),
      { makes: true, label: labelOf(command) },
    )
    if (status !== EXIT.fine) throw new EndedWith(status)
  })
}

/** Runs the command under its locks and gives its status. */
async function runUnder(
  box: Box,
  command: readonly string[],
  options: RunOptions,
  surroundings: RunSurroundings,
): Promise<number> {
  const { tell } = surroundings
  const started = systemClock.now()
  const grant = await acquire(box, options, surroundings)
  if (!grant) return EXIT.fine
  const granted = systemClock.now()
  tell('granted', { keys: grant.keys, token: String(grant.token), waited: Math.round(granted - started) })
  let least = 0
  try {
    const status = await runOnce(box, command, grant, options, surroundings)
    least = status === undefined ? 0 : (options.holdAtLeast ?? 0)
    return status ?? EXIT.fine
  } finally {
    await hold(grant, granted + least - systemClock.now(), surroundings)
  }
}

/** The grant; undefined when the lock is held elsewhere and that is fine. */
async function acquire(
  box: Box,
  { lock, shared = false, permits, wait, lease, skipIfBusy = false }: RunOptions,
  { tell, interrupt, stderr }: RunSurroundings,
): Promise<Grant | undefined> {
  const claims = lock.map((key): Claim =>
    permits ? { key, mode: 'permits', ...permits } : { key, mode: shared ? 'shared' : 'exclusive' },
  )
  try {
    const terms = { wait: wait ?? (skipIfBusy ? 0 : undefined), lease, signal: interrupt }
    return await tellingWaits(box, lock, stderr, () => box.lock(...claims).acquire(terms))
  } catch (error) {
    interrupt.throwIfAborted()
    if (!skipIfBusy || !(error instanceof BusyError || error instanceof TimedOutError)) throw error
    tell('skipped', { reason: 'busy' })
    return undefined
  }
}

/**
 * Runs the command and gives its status; undefined when that was done for the slot. A run that failed does not count as
 * done.
 */
async function runOnce(
  box: Box,
  command: readonly string[],
  grant: Grant,
  { oncePer, lock, fenceEnv, grace }: RunOptions,
  { tell, interrupt }: Surroundings,
): Promise<number | undefined> {
  if (oncePer === undefined) return work(command, grant, { fenceEnv, grace }, tell)
  const run = await box.runs().present(lock, '--once-per', oncePer)
  const { slot } = run
  if (run.isDone) {
    tell('skipped', { reason: 'done', slot })
    return undefined
  }
  interrupt.throwIfAborted()
  const status = await work(command, grant, { fenceEnv, grace }, tell)
  if (status === EXIT.fine) {
    // The command has run: its status must not say that it has not.
    await run.done().catch((error: unknown) => tell('unrecorded', failureOf(error, { slot })))
  }
  return status
}

/** Keeps the grant for so many milliseconds, and gives it back. */
async function hold(grant: Grant, left: number, { tell, interrupt }: Surroundings): Promise<void> {
  await pause(left, systemClock, AbortSignal.any([interrupt, grant.signal]))
  try {
    await grant.release()
  } catch (error) {
    // The command has run, and the lease ends what could not be given back.
    if (!(error instanceof LostError)) tell('unreleased', failureOf(error))
    // A loss has been told while the command ran; afterwards it matters only to a user who wanted the time kept.
    else if (left > 0) throw new CommandError(error.message, EXIT.lost)
  }
}
