/**
 * @typedef {import('../frames.js').Frame} Frame
 * @typedef {Extract<Frame, { kind: 'now' }>} Now
 * @typedef {Extract<Frame, { kind: 'end' }>} End
 * @typedef {import('../frames.js').WorkerState} WorkerState
 * @typedef {import('../frames.js').BusyPlace} BusyPlace
 * @typedef {import('../frames.js').LockedStation} LockedStation
 */

/** So many events are kept. */
const MOST_EVENTS = 50

const numbers = new Intl.NumberFormat('en-US')
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

/** Everything on the page that is text. All of it is set as text, so a name can't be taken for part of the page. */
export class Panel {
  /** @type {Map<number, WorkerState>} */
  #workers = new Map()
  #chosen = -1

  /** @param {string} text */
  title(text) {
    set('title', text)
  }

  /** @param {string} text */
  state(text) {
    set('state', text)
  }

  /**
   * @param {number} station
   * @param {string} name
   */
  choose(station, name) {
    this.#chosen = station
    set('station-name', name)
    this.#showLock([])
  }

  /** @param {Now} now */
  show({ messages, total, seconds, perSecond, underWay, workers, busiest, locked }) {
    const of = total === null ? '' : ` of ${numbers.format(total)}`
    set(
      'figures',
      `${numbers.format(messages)}${of} messages, ${whole.format(perSecond)} a second, ` +
        `${numbers.format(underWay)} trains under way, ${whole.format(seconds)} s`,
    )
    const ready = workers.filter(({ isReady }) => isReady).length
    set('state', `running, ${ready} of ${workers.length} workers at work`)
    this.#showWorkers(workers)
    this.#showBusiest(busiest)
    this.#showLock(locked)
  }

  /** @param {End} end */
  end({ matchesSerial, verdict, busiest }) {
    set('state', verdict.join('\n'))
    byId('state').className = matchesSerial ? 'good' : 'bad'
    // Their processes have ended, as they should.
    this.#showWorkers([...this.#workers.values()].map(state => ({ ...state, isReady: true })))
    this.#showBusiest(busiest)
    this.#showLock([])
  }

  /** @param {readonly WorkerState[]} workers */
  #showWorkers(workers) {
    for (const state of workers) {
      const { worker, kills, replaced } = state
      const before = this.#workers.get(worker)
      this.#workers.set(worker, state)
      if (!before) continue
      if (kills > before.kills) this.#tell(`worker ${worker} was killed`)
      else if (replaced > before.replaced) this.#tell(`worker ${worker} died`)
      if (replaced > before.replaced) this.#tell(`worker ${worker} is replaced`)
    }
    const rows = workers.map(({ worker, isReady, messages, perSecond, kills, replaced }) => {
      const cells = [messages, perSecond, kills, replaced].map(number => whole.format(number))
      return row([String(worker), isReady ? '' : 'away', ...cells], isReady ? '' : 'away')
    })
    byId('workers').replaceChildren(...rows)
  }

  /** @param {readonly BusyPlace[]} places */
  #showBusiest(places) {
    const rows = places.map(({ id, name, created, arrived, departed, deleted }) =>
      row([id, name, ...[created, arrived, departed, deleted].map(count => numbers.format(count))], ''),
    )
    byId('busiest').replaceChildren(...rows)
  }

  /** @param {readonly LockedStation[]} locked */
  #showLock(locked) {
    if (this.#chosen < 0) return
    const lock = locked.find(({ station }) => station === this.#chosen)
    set('station-holders', lock?.holders.length ? `locked by ${lock.holders.join(', ')}` : 'not locked')
    set('station-waiters', lock?.waiters.length ? `waiting: ${lock.waiters.join(', ')}` : '')
  }

  /** @param {string} text */
  #tell(text) {
    const item = document.createElement('li')
    item.textContent = text
    const events = byId('events')
    events.prepend(item)
    while (events.childElementCount > MOST_EVENTS) events.lastElementChild?.remove()
  }
}

/**
 * @param {readonly string[]} cells
 * @param {string} name of its class
 */
function row(cells, name) {
  const line = document.createElement('tr')
  line.className = name
  line.append(
    ...cells.map(text => {
      const cell = document.createElement('td')
      cell.textContent = text
      return cell
    }),
  )
  return line
}

/**
 * @param {string} id
 * @param {string} text
 */
function set(id, text) {
  const element = byId(id)
  // What has not changed is not read out again.
  if (element.textContent !== text) element.textContent = text
}

/** @param {string} id */
function byId(id) {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no ${id}`)
  return found
}
