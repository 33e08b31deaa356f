import { Diagram } from './diagram.js'
import { Panel } from './panel.js'
import { Trains } from './trains.js'

/** @typedef {import('../frames.js').Frame} Frame */

const panel = new Panel()
const diagram = new Diagram(element('svg', SVGSVGElement), element('#diagram', HTMLElement), name =>
  panel.choose(name),
)
const trains = new Trains(element('canvas', HTMLCanvasElement), diagram)

const frames = new EventSource('events')
frames.addEventListener('message', event => take(/** @type {Frame} */ (JSON.parse(String(event.data)))))
frames.addEventListener('error', () => {
  panel.state('not connected')
  // The next server may show another run.
  frames.onopen = () => location.reload()
})

/** @param {Frame} frame */
function take(frame) {
  switch (frame.kind) {
    case 'diagram':
      panel.describe(frame)
      diagram.show(frame.diagram)
      break
    case 'now':
      panel.show(frame)
      diagram.lock(frame.locked)
      if (diagram.chosen >= 0) panel.showLock(frame.locked.find(({ station }) => station === diagram.chosen))
      trains.take(frame.trains)
      break
    case 'end':
      panel.end(frame)
      // This is the last frame.
      frames.close()
  }
}

/**
 * @template {Element} E
 * @param {string} selector
 * @param {new () => E} type
 * @returns {E}
 */
function element(selector, type) {
  const found = document.querySelector(selector)
  if (!(found instanceof type)) throw new Error(`the page has no ${selector}`)
  return found
}
