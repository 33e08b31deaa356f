import type { Clock } from '../../base/clock.js'
import type { Awaitable, CommitOutcome, Listener, Operation, SessionInfo } from '../../engine/contract.js'
import { purposeText } from '../../engine/kit/purpose-text.js'
import { StateEngine, type EngineState, type Hint, type Purpose } from '../../engine/kit/state-engine.js'
import type { Guarantees } from '../../base/guarantees.js'
import { explained, SYNC } from './failures.js'
import { fileGuarantees } from './guarantees.js'
import { OpenFolder } from './open-folder.js'
import { refuseMoved } from './prepare.js'
import type { AddressedMember } from './session-rows.js'

/** Options of the file engine. */
export interface FileOptions {
  readonly folder: string
  /** Whether a commit waits until it is on the disk. */
  readonly durable: boolean
}

/** Keeps the state in a SQLite database, for all processes and threads of one machine that open the same folder. */
export class FileEngine extends StateEngine {
  readonly guarantees: Guarantees
  readonly canSteal = true
  readonly #options: FileOptions
  #opened: { readonly session: string; readonly folder: OpenFolder } | undefined
  #hasLeft = false
  #leaving: Promise<void> | undefined

  /**
   * @param clock the same in all processes. It measures the leases in the folder, although it may stop while the
   * machine sleeps. All processes sleep at the same time, and a holder's own clock, which counts sleep, ends its grant
   * no later.
   */
  constructor(
    readonly name: string,
    options: FileOptions,
    clock: Clock,
    ownClock: Clock,
  ) {
    super(clock, ownClock)
    this.#options = options
    this.guarantees = fileGuarantees(options.durable)
  }

  override async join(info: SessionInfo, listener: Listener): Promise<void> {
    const { session } = info
    try {
      const folder = await OpenFolder.enter(this.#options.folder, this.clock)
      const { database, state, mailbox, boxes, deaths } = folder
      this.#opened = { session, folder }
      const member: AddressedMember = { ...info, address: mailbox.address }
      await super.join(member, listener)
      boxes.set(session, {
        receive: hint => this.receive(hint),
        revoke: async dead => this.submit({ type: 'revoke', session: dead }),
        ended: reason => listener.ended(reason),
      })
      const addresses = await database.run(() => state.sessions.addresses())
      await deaths.visit(addresses)
      void mailbox.removeOrphans(addresses)
    } catch (error) {
      const folder = this.#opened?.folder
      this.#opened = undefined
      folder?.boxes.delete(session)
      await folder?.leave(true)
      throw explained(this.name, purposeText({ type: 'join' }), error)
    }
  }

  override leave(): Promise<void> {
    return (this.#leaving ??= this.#leave())
  }

  protected override async transact<T>(work: (state: EngineState) => T, purpose: Purpose): Promise<T> {
    const opened = this.#opened!
    try {
      if (purpose.type === 'list' || (purpose.type === 'read' && purpose.ids.length === 0)) {
        const read = opened.folder.readAlone(work)
        if (read) return read
      }
      const { database, state, machine } = opened.folder
      const result = await database.run(() => {
        if (purpose.type === 'join') refuseMoved(database, machine)
        return state.change(work, purpose)
      })
      if (purpose.type === 'leave') this.#hasLeft = true
      return result
    } catch (error) {
      opened.folder.endIfReplaced()
      throw explained(this.name, purposeText(purpose), error)
    }
  }

  protected override notify(to: SessionInfo, hint: Hint): Awaitable<void> {
    if (!this.#opened) return
    const { boxes, mailbox } = this.#opened.folder
    // `FileState` returns each session with its address.
    const { session, address } = to as AddressedMember
    const local = boxes.get(session)
    if (local) return queueMicrotask(() => local.receive(hint))
    return mailbox.send(address, `${hint.type} ${hint.about}`)
  }

  protected override settle(operation: Operation, outcome: unknown): Awaitable<void> {
    const { folder } = this.#opened!
    folder.deaths.note(operation, outcome)
    if (operation.type !== 'commit' || !this.#options.durable) return
    if ((outcome as CommitOutcome).state !== 'committed') return
    return folder.database.log.sync().catch((error: unknown) => {
      throw explained(this.name, SYNC, error)
    })
  }

  async #leave(): Promise<void> {
    await super.leave()
    if (!this.#opened) return
    const { session, folder } = this.#opened
    folder.boxes.delete(session)
    folder.deaths.left(session)
    await folder.leave(!this.#hasLeft)
  }
}
