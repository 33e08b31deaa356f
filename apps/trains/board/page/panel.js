/**
 * @typedef {import('../frames.js').WorkerState} WorkerState
 * @typedef {import('../frames.js').BusyPlace} BusyPlace
 * @typedef {import('../frames.js').LockedStation} LockedStation
 */

const numbers = new Intl.NumberFormat('en-US')
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

/** The text of the page. It is set as text, so a name can't be interpreted as markup. */
export class Panel {
  /** @param {import('../frames.js').DiagramFrame} frame */
  describe({ title, diagram: { left } }) {
    set('title', title)
    set('left', left === 0 ? '' : `${numbers.format(left)} stations with fewer stops are not shown.`)
  }

  /** @param {string} text */
  state(text) {
    set('state', text)
  }

  /** @param {string} name of a station */
  choose(name) {
    set('station-name', name)
    set('station-holders', '')
    set('station-waiters', '')
  }

  /** @param {import('../frames.js').NowFrame} now */
  show({ messages, total, seconds, perSecond, running, workers, events, busiest }) {
    const of = total === null ? '' : ` of ${numbers.format(total)}`
    set(
      'figures',
      `${numbers.format(messages)}${of} messages, ${whole.format(perSecond)} per second, ` +
        `${numbers.format(running)} trains running, ${whole.format(seconds)} s`,
    )
    const ready = workers.filter(({ isReady }) => isReady).length
    set('state', `running; ${ready} of ${workers.length} workers ready`)
    this.#showWorkers(workers)
    this.#showEvents(events)
    this.#showBusiest(busiest)
  }

  /** @param {LockedStation | undefined} lock of the selected station */
  showLock(lock) {
    set('station-holders', lock?.holders.length ? `locked by ${lock.holders.join(', ')}` : 'not locked')
    set('station-waiters', lock?.waiters.length ? `waiting: ${lock.waiters.join(', ')}` : '')
  }

  /** @param {import('../frames.js').EndFrame} end */
  end({ outcome, lines }) {
    set('state', lines.join('\n'))
    byId('state').className = outcome
  }

  /** @param {readonly WorkerState[]} workers */
  #showWorkers(workers) {
    const rows = workers.map(({ worker, isReady, messages, perSecond, kills, replaced }) => {
      const cells = [messages, perSecond, kills, replaced].map(number => whole.format(number))
      return row([String(worker), isReady ? '' : 'restarting', ...cells], isReady ? '' : 'restarting')
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

  /** @param {readonly string[]} events newest first */
  #showEvents(events) {
    const items = events.map(text => {
      const item = document.createElement('li')
      item.textContent = text
      return item
    })
    byId('events').replaceChildren(...items)
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
  // Unchanged text is not announced again.
  if (element.textContent !== text) element.textContent = text
}

/** @param {string} id */
function byId(id) {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no ${id}`)
  return found
}
