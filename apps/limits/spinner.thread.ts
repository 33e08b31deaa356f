/** Uses all the processor time that it gets. */
while (true) Math.sqrt(Math.random())
