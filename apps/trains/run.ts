import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Board, RunState } from './board/board.js'
import { withoutSecrets } from 'signalbox/reports'
import { systemClock } from './clock.js'
import type { DeadLetterFile } from './dead-letters.js'
import { changesOf, locationKey, type LocationCounts } from './domain/location.js'
import type { Findings } from './input/findings.js'
import { paced } from './input/pacing.js'
import type { MessageSource, TimedMessage } from './input/source.js'
import type { Log } from './log/log.js'
import type { Message } from './messages/message.js'
import { registry } from './messages/registry.js'
import type { Settings } from './options.js'
import { measurePeakMemory } from './peak-memory.js'
import { checkResumable, IdDigest, loadProgress, saveProgress, skipDone, type Progress } from './progress.js'
import { reasonOf } from './reason.js'
import { compareLocations, countsOf } from './report/comparison.js'
import { Histogram } from './report/histogram.js'
import { ProgressDisplay } from './report/progress-display.js'
import type { Report } from './report/report.js'
import { SerialResult, type SerialMessage } from './serial.js'
import { planKills } from './supervisor/kill-plan.js'
import { Kills } from './supervisor/kills.js'
import { Supervisor } from './supervisor/supervisor.js'
import type { StartWorker } from './supervisor/worker-process.js'
import type { Tracker } from './tracker.js'
import { ALREADY_APPLIED } from './worker/message-processor.js'

/**
 * Interval between saves of the progress, in milliseconds. If the supervisor is killed, a resumed run delivers the
 * messages since the last save again.
 */
const SAVE_INTERVAL = 1000

const MAX_DIFFERENCES = 10

const READ_BATCH = 64

export interface RunParts {
  readonly settings: Settings
  readonly source: MessageSource
  /** The faults of the input. Reading the input adds more of them. */
  readonly findings: Findings
  readonly tracker: Tracker
  readonly startWorker: StartWorker
  readonly deadLetters: DeadLetterFile
  readonly log: Log
  readonly output: NodeJS.WriteStream
  /** Shows the run; undefined without `--watch`. */
  readonly board: Board | undefined
}

/** A run of the tracker, from the input to the report. */
export class Run {
  readonly #parts: RunParts
  /** The progress of the run that this one resumes; undefined for a new run. */
  readonly #earlier: Progress | undefined
  readonly #name: string
  readonly #supervisor: Supervisor
  readonly #kills: Kills
  readonly #serial = new SerialResult()
  readonly #digest = new IdDigest()
  readonly #lockWaits = new Histogram()
  readonly #deadLettered: number[] = []
  /** All locations that messages name, including those that no message should have changed. */
  readonly #mentioned = new Set<string>()
  readonly #stop = new AbortController()
  readonly #peakMemory = measurePeakMemory()
  #done = 0
  /** The time of the timetable, in a run that follows it. */
  #time: number | undefined
  #saving: Promise<void> | undefined

  private constructor(parts: RunParts, earlier: Progress | undefined) {
    const { settings, source, tracker, startWorker, deadLetters, log, board } = parts
    this.#parts = parts
    this.#earlier = earlier
    // The name is short, because every ID and value contains it.
    this.#name = earlier?.run ?? randomBytes(9).toString('base64url')
    this.#kills = new Kills(planKills(settings.kill, source.total))
    this.#supervisor = new Supervisor({
      processes: settings.processes,
      // At least two, so that workers contend for locks. With a slowdown for viewers, all of them, because they wait
      // most of the time.
      atOnce: settings.dwell > 0 ? settings.processes : Math.max(availableParallelism(), 2),
      startWorker,
      settingsOf: worker => ({ ...settings, worker, run: this.#name }),
      revoke: session => tracker.revoke(session),
      kills: this.#kills,
      first: earlier?.lowWatermark ?? 0,
      onDone: (message, sequence, deadLettered) => this.#note(message, sequence, deadLettered),
      onAcknowledged: ({ waits }) => {
        for (const wait of waits) this.#lockWaits.add(wait)
      },
      onSettled: board && ((message, event) => board.settled(message, event)),
      placeOf: message => registry.placeOf(message),
      keepDeadLetter: letter => deadLetters.keep(letter),
      log,
    })
  }

  /**
   * Prepares a new run, or one that continues the last run on this engine.
   * @throws InputError if the last run can't be resumed with this input; the engine's errors.
   */
  static async prepare(parts: RunParts): Promise<Run> {
    const { settings, source, tracker, deadLetters, log } = parts
    const earlier = settings.resume ? await loadProgress(tracker) : undefined
    if (earlier) {
      checkResumable(earlier, source.description)
      log.info('resumed', { run: earlier.run, after: earlier.lowWatermark })
    } else {
      if (settings.resume) log.warn('nothing to resume', { engine: withoutSecrets(settings.engine) })
      deadLetters.clear()
    }
    const run = new Run(parts, earlier)
    if (!earlier) await run.#save()
    return run
  }

  /**
   * Delivers all messages and returns the report. Returns undefined if the run was stopped before it reached the end of
   * the run that it resumes, because it has done nothing then.
   * @throws Error if the run is aborted.
   */
  async deliver(): Promise<Report | undefined> {
    const { settings, source, output, board } = this.#parts
    const supervisor = this.#supervisor
    board?.begin(() => this.#state())
    await supervisor.start()
    const display = new ProgressDisplay(output, source.total, () => this.#doneSoFar())
    const saving = setInterval(() => this.#saveProgress(), SAVE_INTERVAL)
    const begun = performance.now()
    display.start()
    let complete: boolean
    try {
      complete = await supervisor.deliver(this.#messages())
    } catch (error) {
      supervisor.abandon()
      throw error
    } finally {
      clearInterval(saving)
      display.stop()
    }
    const seconds = (performance.now() - begun) / 1000
    await supervisor.finish()
    const kills = this.#kills.done.length
    if (kills < settings.kill) this.#parts.log.warn('fewer kills than requested', { kills })
    if (this.#catchingUp()) return undefined
    await this.#saving
    await this.#save()
    const report = this.#report(complete, seconds, await this.#storedLocations())
    board?.end(report)
    return report
  }

  /** Stops reading. The run ends when the messages that were read are done. */
  stop(): void {
    this.#stop.abort()
    this.#supervisor.stop()
  }

  /** Aborts the run. A run that resumes it delivers the unacknowledged messages again. */
  abandon(): void {
    this.#supervisor.abandon()
  }

  #messages(): AsyncIterable<readonly TimedMessage[]> {
    const { settings, source, board } = this.#parts
    const all = source.batches()
    const messages = this.#earlier
      ? skipDone(all, this.#earlier, this.#digest, (message, sequence, deadLettered) => {
          if (!deadLettered) board?.settled(message, ALREADY_APPLIED)
          this.#note(message, sequence, deadLettered)
        })
      : all
    const speed = settings.input.kind === 'timetable' ? settings.input.speed : undefined
    return speed === undefined
      ? messages
      : this.#timed(paced(messages, speed, systemClock, this.#stop.signal))
  }

  async *#timed(batches: AsyncIterable<readonly TimedMessage[]>): AsyncGenerator<readonly TimedMessage[]> {
    for await (const batch of batches) {
      this.#time = batch.at(-1)?.time
      yield batch
    }
  }

  /** Records a message that is done, and applies it to the serial result. Must be called in the order of the stream. */
  #note(message: Message, sequence: number, deadLettered: boolean): void {
    this.#done = sequence + 1
    this.#digest.add(message.id)
    if (deadLettered) this.#deadLettered.push(sequence)
    else this.#serial.apply(message)
    const { location, to } = message as SerialMessage
    if (location !== undefined) this.#mentioned.add(location)
    if (to !== undefined) this.#mentioned.add(to)
  }

  /** Whether this run is still before the end of the run that it resumes. */
  #catchingUp(): boolean {
    return this.#done < (this.#earlier?.lowWatermark ?? 0)
  }

  #doneSoFar(): number {
    return (this.#earlier?.lowWatermark ?? 0) + this.#supervisor.acknowledged
  }

  #state(): RunState {
    const kills = this.#kills.done
    return {
      messages: this.#doneSoFar(),
      time: this.#time ?? null,
      kills: kills.length,
      redelivered: this.#supervisor.redelivered,
      alreadyApplied: this.#supervisor.alreadyApplied,
      workers: this.#supervisor.perWorker.map(({ worker, messages, replaced }) => ({
        worker,
        isReady: this.#supervisor.isReady(worker),
        messages,
        kills: kills.filter(kill => kill.worker === worker).length,
        replaced,
      })),
    }
  }

  #save(): Promise<void> {
    const { source, tracker } = this.#parts
    return saveProgress(tracker, {
      run: this.#name,
      input: source.description,
      lowWatermark: this.#done,
      digest: this.#digest.value,
      deadLettered: [...this.#deadLettered],
      at: Date.now(),
    })
  }

  #saveProgress(): void {
    // Writes one after another, because two concurrent writes could arrive in the wrong order.
    if (this.#saving || this.#catchingUp()) return
    this.#saving = this.#save()
      .catch((error: unknown) => this.#parts.log.warn('progress not stored', { reason: reasonOf(error) }))
      .finally(() => (this.#saving = undefined))
  }

  async #storedLocations(): Promise<ReadonlyMap<string, LocationCounts>> {
    const store = this.#parts.tracker.store(this.#name)
    const found = new Map<string, LocationCounts>()
    const ids = [...this.#mentioned].sort()
    for (let begin = 0; begin < ids.length; begin += READ_BATCH) {
      const some = ids.slice(begin, begin + READ_BATCH)
      const stored = await Promise.all(some.map(id => store.get(locationKey(id))))
      for (const [index, id] of some.entries()) {
        const location = stored[index] as LocationCounts | undefined
        if (location) found.set(id, countsOf(location))
      }
    }
    return found
  }

  #report(complete: boolean, seconds: number, locations: ReadonlyMap<string, LocationCounts>): Report {
    const { settings, source, findings } = this.#parts
    const differences = compareLocations(this.#serial.locations, locations)
    const changes = changesOf(locations.values())
    const settled = this.#done - this.#deadLettered.length
    return {
      engine: withoutSecrets(settings.engine),
      input: source.description,
      processes: settings.processes,
      days: source.days ?? null,
      messages: this.#done,
      resumedAfter: this.#earlier?.lowWatermark ?? 0,
      interrupted: !complete,
      seconds,
      perSecond: this.#supervisor.acknowledged / seconds,
      ...changes,
      ignored: Math.max(0, settled - changes.created - changes.moved - changes.deleted),
      ...findings.summary,
      deadLettered: this.#deadLettered.length,
      redelivered: this.#supervisor.redelivered,
      alreadyApplied: this.#supervisor.alreadyApplied,
      kills: this.#kills.done,
      lockWaitMs: {
        p50: this.#lockWaits.percentile(0.5) ?? null,
        p99: this.#lockWaits.percentile(0.99) ?? null,
      },
      serial: this.#serial.totals,
      matchesSerial: differences.length === 0,
      differences: differences.slice(0, MAX_DIFFERENCES),
      locations: Object.fromEntries(locations),
      perWorker: this.#supervisor.perWorker,
      peakMemory: this.#peakMemory(),
    }
  }
}
