import { type Command, Option } from 'commander'
import type { Box, BoxLimiter } from '../index.js'
import { systemClock } from '../base/clock.js'
import type { Duration } from '../base/duration.js'
import { BusyError, TimedOutError } from '../base/errors.js'
import { duration, keyOf, rateOf } from './arguments.js'
import { Child } from './child.js'
import { type EngineOptions, engineOption, withBox } from './engine.js'
import { EXIT } from './exit-status.js'
import { CommandError, EndedWith } from './failure.js'
import { Interrupt } from './interrupt.js'
import type { Terminal } from './terminal.js'
import { reporter } from './work.js'
import { labelOf, refuseCommandAsName } from './work-options.js'
import type { Readable } from 'node:stream'
import { onAbort } from '../base/abort-task.js'

interface LimitOptions extends EngineOptions {
  rate: { limit: number; per: Duration }
  wait?: number
  perLine?: boolean
  json?: boolean
}

export function addLimit(program: Command, terminal: Terminal): void {
  const limit = program
    .command('limit')
    .description('run a command, or copy lines, at a rate that all processes share')
    .usage('NAME --rate N/TIME [options] (-- COMMAND... | --per-line)')
    .argument('<name>', 'the name of the limit', keyOf)
    .argument('[command...]', 'the command and its arguments')
    .addOption(
      new Option('--rate <n/time>', 'maximum rate, such as 20/s or 500/15m')
        .argParser(rateOf)
        .makeOptionMandatory(),
    )
    .addOption(new Option('--wait <time>', 'how long to wait (default: no limit)').argParser(duration))
    .option('--per-line', 'copy standard input to standard output, with one permit for each line')
    .addOption(engineOption())
    .option('--json', 'report events on standard error, in lines of JSON')
  limit.action(async (name: string, command: readonly string[], options: LimitOptions) => {
    refuseCommandAsName(limit, command)
    if (command.length > 0 === (options.perLine ?? false)) {
      throw new CommandError('limit takes either a command after -- or --per-line', EXIT.usage)
    }
    const label = command.length > 0 ? labelOf(command) : undefined
    const status = await withBox(
      options.engine,
      box =>
        command.length > 0
          ? runLimited(box, name, command, options, terminal)
          : filter(box, name, options, terminal),
      { creates: true, ...(label !== undefined && { label }) },
    )
    if (status !== EXIT.fine) throw new EndedWith(status)
  })
}

async function runLimited(
  box: Box,
  name: string,
  command: readonly string[],
  { rate, wait, json = false }: LimitOptions,
  { stderr }: Terminal,
): Promise<number> {
  const report = reporter(stderr, json)
  await using limiter = box.limiter(name, rate)
  using interrupt = new Interrupt()
  const started = systemClock.now()
  await interrupt.during(signal => limiter.acquire(1, { wait, signal }))
  report('granted', { name, waited: Math.round(systemClock.now() - started) })
  // No lock depends on the command, so it is never stopped.
  const status = await new Child(command, {}, 0).ended
  report('ended', { status })
  return status
}

async function filter(
  box: Box,
  name: string,
  { rate, wait, json = false }: LimitOptions,
  { stdin, stdout, stderr, unread }: Terminal,
): Promise<number> {
  let lines = 0
  await using limiter = box.limiter(name, rate)
  using interrupt = new Interrupt()
  await interrupt.during(async interrupted => {
    const signal = AbortSignal.any([interrupted, unread])
    try {
      for await (const line of linesOf(stdin, signal)) {
        await permit(limiter, wait, signal)
        await new Promise<void>(resolve => void stdout.write(line, () => resolve()))
        lines++
      }
    } catch (error) {
      // The reader has closed the pipe.
      if (!unread.aborted) throw error
    } finally {
      stdin.destroy()
      reporter(stderr, json)('ended', { name, lines })
    }
  })
  return EXIT.fine
}

async function permit(limiter: BoxLimiter, wait: number | undefined, signal: AbortSignal): Promise<void> {
  try {
    await limiter.acquire(1, { wait, signal })
  } catch (error) {
    if (!(error instanceof TimedOutError || error instanceof BusyError)) throw error
    throw new CommandError(`a line exceeded --wait: ${error.message}`, EXIT.busy)
  }
}

const LINE_FEED = 10

/**
 * Yields the lines of a stream, byte for byte, each with its line feed. The last one may have none.
 * @throws the stream's error, and the signal's reason.
 */
async function* linesOf(stream: Readable, signal: AbortSignal): AsyncGenerator<Buffer, void, void> {
  signal.throwIfAborted()
  const letGo = onAbort(signal, () => void stream.destroy(signal.reason as Error))
  const begun: Buffer[] = []
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      let from = 0
      for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
        yield Buffer.concat([...begun.splice(0), chunk.subarray(from, at + 1)])
        from = at + 1
      }
      if (from < chunk.length) begun.push(chunk.subarray(from))
    }
    if (begun.length > 0) yield Buffer.concat(begun)
  } finally {
    letGo()
  }
}
