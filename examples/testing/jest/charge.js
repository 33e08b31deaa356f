const { open } = require('signalbox')

/** Charges an invoice. It opens its own box, so its tests replace `open`. */
async function charge(invoice, pay) {
  const box = await open(process.env.LOCKS_URL ?? 'redis://localhost:6379')
  try {
    await box.mutex(`invoice:${invoice}`).run(({ signal }) => pay(signal), { wait: '5s' })
  } finally {
    await box.close()
  }
}

module.exports = { charge }
